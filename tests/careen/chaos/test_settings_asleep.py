"""Whole agents that sleep meet every change of their ConfigMap as agents that are awake, within five minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from careen.agent.loop import Loop
from careen.agent.startup import following
from careen.agent.startup.following import READ_SECONDS
from careen.cluster.wire.transport import Request, Response
from careen.core.facts import keys
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.stories import put_agents_pods
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.whole_agents import WholeAgent, WholeAgents, on_virtual_hosts
from tests.careen.chaos.fleet.world import Shape, World

NAMES = ("n1", "n2")
CLOSED, OPEN = "reboot-days: []\nforecast: 'off'", "reboot-days: [mo,tu,we,th,fr,sa,su]\nforecast: 'off'"
CHANGED = "the ConfigMap has changed"

Spoil = Callable[[World], None]


def put_settings(world: World, text: str) -> None:
    """As `kubectl apply` does."""
    if world.server.get("configmaps", "careen", "careen") is None:
        metadata = {"name": "careen", "namespace": "careen"}
        world.server.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, actor="person")
    world.server.change(
        "configmaps",
        "careen",
        lambda old: {**old, "data": {"config.yaml": text}},
        actor="person",
        namespace="careen",
    )


def that_begins(worlds: list[World], settings: str) -> Callable[[World], None]:
    """Prepares a world of whole agents with these settings, and adds it to `worlds`."""

    def prepare(world: World) -> None:
        worlds.append(world)
        put_settings(world, settings)
        put_agents_pods(world)

    return prepare


def delete_settings(world: World) -> None:
    world.server.remove("configmaps", "careen", actor="person", namespace="careen")


def forbid_settings(world: World) -> None:
    """Somebody takes the right to read the ConfigMap away."""
    answer = world.server.answer

    def refuse(request: Request, actor: str) -> Response:
        if actor.startswith("careen-agent") and "/configmaps/" in request.path:
            return world.server.refusal(403, "configmaps is forbidden")
        return answer(request, actor)

    world.server.answer = refuse  # type: ignore[method-assign]


def told(world: World) -> int:
    return sum(1 for each in world.agents.sent_events if each.reason == "BadSettings")


def config_ok(world: World, name: str) -> float:
    return float(world.agents.metrics_of(name)._config_ok.labels(name)._value.get())


def wakes(world: World) -> list[str]:
    return [why for _, _, why in world.agents.changes if why]


def all_sleep(world: World) -> bool:
    return all(each.is_asleep for each in world.agents.processes)


def refusals(world: World, name: str) -> str:
    return people._annotations(world, name).get("careen.dev/refusals", "")


def play(story: Callable[[World], object]) -> World:
    """A world of two whole agents that sleep behind a closed window."""
    worlds: list[World] = []

    async def whole() -> World:
        world = World(Shape(nodes=2), agents=WholeAgents, prepare=that_begins(worlds, CLOSED))
        await asyncio.sleep(30.0)
        assert all_sleep(world), world.report([])
        await story(world)  # type: ignore[misc]
        world.stop()
        return world

    with on_virtual_hosts(worlds):
        return run_virtually(whole())


@pytest.mark.parametrize(
    ("spoil", "reports"),
    [
        (lambda world: put_settings(world, "reboot-days: [someday]"), 1),
        (lambda world: put_settings(world, "reboot-days: ["), 1),
        (lambda world: put_settings(world, "reboot-dayz: [mo]"), 1),
        (delete_settings, 1),
        (forbid_settings, 0),
    ],
    ids=["a bad value", "no YAML", "an unknown key", "deleted", "no right"],
)
def test_settings_that_cannot_be_used_leave_those_before_in_force_for_every_later_form(
    spoil: Spoil, reports: int
) -> None:
    async def story(world: World) -> None:
        spoil(world)
        await asyncio.sleep(700.0)
        assert len(world.agents.processes) == 2
        assert not world.agents.deaths
        if reports:
            assert wakes(world).count(CHANGED) == 2, wakes(world)
            assert [config_ok(world, name) for name in NAMES] == [0.0, 0.0]
        await asyncio.sleep(3600.0)
        assert all_sleep(world) or not reports
        assert wakes(world).count(CHANGED) == 2 * reports, wakes(world)
        assert told(world) == 2 * reports
        await world.all_need_a_reboot()
        await asyncio.sleep(30.0)
        assert ["outside-window" in refusals(world, name) for name in NAMES] == [True, True]
        assert told(world) == 2 * reports

    world = play(story)
    assert not world.agents.deaths
    assert not [event for event in world.fleet.log if event.what == "asked"]
    assert not world.agents.breaches


def test_repaired_settings_are_in_force_within_five_minutes() -> None:
    async def story(world: World) -> None:
        put_settings(world, "reboot-days: [someday]")
        await asyncio.sleep(301.0)
        put_settings(world, OPEN)
        await asyncio.sleep(301.0)
        assert [config_ok(world, name) for name in NAMES] == [1.0, 1.0]
        await world.all_need_a_reboot()
        await world.until_home(900.0)

    world = play(story)
    assert world.verdict() == [], world.report(world.verdict())
    assert {event.host for event in world.fleet.log if event.what == "booted"} == set(NAMES)


def test_a_process_that_dies_has_no_settings_from_before_its_sleep() -> None:
    """As any new process: without a claim, it ends until the ConfigMap can be used."""

    async def story(world: World) -> None:
        put_settings(world, "reboot-days: [someday]")
        await asyncio.sleep(301.0)
        people.crash_agent(world, "n1")
        await asyncio.sleep(30.0)
        assert [line for line in world.agents.trace if "n1: the start is refused" in line]
        assert not [line for line in world.agents.trace if "n2: the start is refused" in line]
        put_settings(world, OPEN)
        await world.all_need_a_reboot()
        await world.until_home(900.0)

    world = play(story)
    assert world.verdict() == [], world.report(world.verdict())


def test_a_woken_agent_reviews_no_rights_also_if_it_stays_awake() -> None:
    reviews: list[str] = []

    async def story(world: World) -> None:
        def plan(_number: int, node: str, request: Request) -> None:
            if request.path.endswith("reviews"):
                reviews.append(node)

        world.agents.plan = plan  # type: ignore[assignment]
        put_settings(world, CLOSED + "\nperiod: 2h")
        await asyncio.sleep(301.0)
        assert wakes(world).count(CHANGED) == 2
        await world.all_need_a_reboot()
        await asyncio.sleep(900.0)
        assert ["outside-window" in refusals(world, name) for name in NAMES] == [True, True]
        assert reviews == []
        people.crash_agent(world, "n1")
        await asyncio.sleep(30.0)
        assert set(reviews) == {"n1"}

    play(story)


def test_a_recheck_wakes_the_agent_which_then_meets_an_edit_at_once() -> None:
    async def story(world: World) -> None:
        put_settings(world, "reboot-days: [someday]")
        await asyncio.sleep(1.0)
        people.annotate(world, "n1", keys.RECHECK, "2026-03-04T12:00:00Z")
        await asyncio.sleep(10.0)
        assert [config_ok(world, name) for name in NAMES] == [0.0, 1.0]
        assert keys.RECHECK not in people._annotations(world, "n1")
        assert [why for at, node, why in world.agents.changes if node == "n1" and why] == ["the Node has changed"]

    assert not play(story).agents.breaches


def test_a_window_that_closes_in_the_middle_of_a_roll_out_is_closed_for_the_nodes_in_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their agents woke a moment ago. They follow the ConfigMap only when its window refuses."""
    worlds: list[World] = []
    followed: list[str] = []
    monkeypatch.setattr(WholeAgent, "_follow_config_map", lambda agent, *_: followed.append(agent._node))

    async def story() -> World:
        world = World(Shape(nodes=4), agents=WholeAgents, prepare=that_begins(worlds, OPEN))
        await asyncio.sleep(30.0)
        assert all_sleep(world), world.report([])
        await world.all_need_a_reboot()
        while not world.agents.holders():
            await asyncio.sleep(0.2)
        assert not followed
        put_settings(world, CLOSED)
        await asyncio.sleep(1.2 * READ_SECONDS)
        begun = {event.host for event in world.fleet.log if event.what == "asked"} | world.agents.holders()
        await asyncio.sleep(300.0)
        assert {event.host for event in world.fleet.log if event.what == "asked"} <= begun
        waiting = [name for name in world.shape.names if "outside-window" in refusals(world, name)]
        assert len(waiting) >= 2, world.report([])
        assert set(waiting) <= {*followed}
        world.stop()
        return world

    with on_virtual_hosts(worlds):
        assert not run_virtually(story()).agents.breaches


def test_a_config_map_that_is_read_again_and_has_not_changed_causes_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds: list[World] = []
    read: list[str] = []
    woken: list[Loop] = []
    monkeypatch.setattr(Loop, "wake", lambda loop: woken.append(loop))  # noqa: PLW0108 - a method
    once = WholeAgent._read_config_map

    async def counted(agent: WholeAgent, *given: Any) -> None:
        await once(agent, *given)
        read.append(agent._node)

    monkeypatch.setattr(WholeAgent, "_read_config_map", counted)

    async def story() -> None:
        world = World(Shape(nodes=4), agents=WholeAgents, prepare=that_begins(worlds, OPEN))
        await asyncio.sleep(30.0)
        await world.all_need_a_reboot()
        await world.until_home(900.0)
        world.stop()

    with on_virtual_hosts(worlds):
        run_virtually(story())
    assert len({*read}) >= 2
    assert woken == []


def test_a_lower_concurrency_holds_for_the_next_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents of the nodes in line woke a moment ago. Each reads the ConfigMap before its claim is in the lock."""
    worlds: list[World] = []
    monkeypatch.setattr(following, "READ_SECONDS", 1e9)

    async def story() -> World:
        world = World(
            Shape(nodes=6, concurrency=2), agents=WholeAgents, prepare=that_begins(worlds, OPEN + "\nconcurrency: 2")
        )
        await asyncio.sleep(30.0)
        await world.all_need_a_reboot()
        while len(world.agents.holders()) < 2:
            await asyncio.sleep(0.2)
        put_settings(world, OPEN + "\nconcurrency: 1")
        await asyncio.sleep(1.0)
        before, most = world.agents.holders(), 0
        while world.now < 400.0:
            await asyncio.sleep(0.1)
            holders = world.agents.holders()
            most = max(most, len(holders) if holders - before else 0)
            before = holders
        assert most == 1
        assert {event.host for event in world.fleet.log if event.what == "booted"} == set(world.shape.names)
        world.stop()
        return world

    with on_virtual_hosts(worlds):
        assert not run_virtually(story()).agents.breaches
