"""Agents that sleep notice what concerns them, in time and with few requests. Whatever happens around a change of form,
no rule breaks. The simulated agents run careen's sleeper, and wake with what it hands over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import CutOff, Process
from tests.careen.chaos.fleet.sleepers import Instant
from tests.careen.chaos.fleet.thousands import pause, set_number_of_agents
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World
from tests.careen.chaos.test_restored_store import restore

TWO, THREE = Shape(nodes=2), Shape(nodes=3)
CONFIG_SECONDS = 301.0
"""A change of the ConfigMap takes effect within five minutes."""
AFTER_AN_OUTAGE_SECONDS = 61.0
"""The longest pause before a sleeping agent tries again to follow its Node."""

Disturb = Callable[[World], None]


async def asleep(shape: Shape = TWO, **given: Any) -> World:
    """Return a world half a minute after the agents fell asleep."""
    world = World(shape, **given)
    await asyncio.sleep(30.0)
    assert all(each.is_asleep for each in world.agents.processes), world.agents.changes
    return world


def process_of(world: World, name: str = "n1") -> Process:
    (found,) = (each for each in world.agents.processes if each.node == name)
    return found


def wakes(world: World, name: str = "n1", since: float = 30.0) -> list[tuple[float, str]]:
    """Return when the node's agent woke, and why."""
    return [(at, why) for at, node, why in world.agents.changes if node == name and why and at >= since]


async def until_awake(world: World, longest_seconds: float, name: str = "n1") -> float:
    """Return after how many seconds the node's agent has woken."""
    began = world.now
    while not wakes(world, name, began):
        assert world.now - began <= longest_seconds, f"{name} still sleeps after {longest_seconds} s"
        await asyncio.sleep(0.1)
    return world.now - began


def phase(world: World, name: str = "n1") -> str:
    return people._annotations(world, name).get("careen.dev/phase", "Idle")


# Needs -----------------------------------------------------------------------------------------------------------


def test_the_need_of_a_sleeping_node_is_tainted_within_ten_seconds_and_the_roll_out_ends() -> None:
    async def story() -> World:
        world = await asleep(THREE)
        await world.all_need_a_reboot()
        await world.until_home(900.0)
        world.stop()
        return world

    world = run_virtually(story())
    assert world.verdict() == [], world.report([])
    assert [why for name in THREE.names for _, why in wakes(world, name)] == ["/run/reboot-required has changed"] * 3


def test_a_waiting_agent_of_a_large_fleet_stays_awake() -> None:
    """Each of its looks would begin with a start. All of them would cost twice as many requests."""

    async def story() -> World:
        world = World(TWO)
        set_number_of_agents(world, 5000)
        pause(world)
        await world.all_need_a_reboot()
        await asyncio.sleep(4000.0)
        world.stop()
        return world

    world = run_virtually(story())
    assert {phase(world, name) for name in TWO.names} == {"Waiting"}
    assert not [each for each in world.agents.changes if each[0] > 120.0]


@pytest.mark.parametrize("seconds", [0.5, 3.0, 30.0])
def test_a_need_that_vanishes_leaves_nothing_behind(seconds: float) -> None:
    async def story() -> World:
        world = await asleep()
        world.fleet.hosts["n1"].needs_reboot()
        people.pause(world, "n1")
        await asyncio.sleep(seconds)
        people.forget_need(world, "n1")
        await asyncio.sleep(60.0)
        assert phase(world) == "Idle"
        assert not [event for event in world.fleet.log if event.what == "asked"]
        world.stop()
        return world

    world = run_virtually(story())
    assert not world.agents.breaches
    assert not [each for each in world.server.get("nodes", "n1")["spec"]["taints"] if each["key"] != "theirs"]  # type: ignore[index]


# People and the cluster ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("disturb", "why"),
    [
        pytest.param(lambda world: people.hold(world, "n1"), "the Node has changed", id="a hold"),
        pytest.param(
            lambda world: people.annotate(world, "n1", people.REQUEST, "reboot"), "the Node has changed", id="a request"
        ),
        pytest.param(
            lambda world: world.server.change(
                "nodes", "n1", lambda old: people._with(old, "labels", {"pool": "maintenance"}), actor="person"
            ),
            "the Node has changed",
            id="a label",
        ),
        pytest.param(
            lambda world: world.server.remove("nodes", "n1", actor="person"), "the Node was deleted", id="a deletion"
        ),
        pytest.param(lambda world: people.hide_sentinel(world, "n1"), "cannot be checked", id="a file that is unknown"),
    ],
)
def test_what_concerns_the_node_wakes_its_agent_within_five_seconds(disturb: Disturb, why: str) -> None:
    async def story() -> World:
        world = await asleep()
        disturb(world)
        await until_awake(world, 5.0)
        world.stop()
        return world

    world = run_virtually(story())
    assert why in wakes(world)[0][1]
    assert not wakes(world, "n2")


def test_a_request_on_a_sleeping_node_reboots_it() -> None:
    async def story() -> World:
        world = await asleep()
        people.annotate(world, "n1", people.REQUEST, "reboot")
        await asyncio.sleep(5.0)
        assert phase(world) != "Idle"
        await world.until_home(900.0)
        world.stop()
        return world

    world = run_virtually(story())
    assert [event.host for event in world.fleet.log if event.what == "booted"] == ["n1"]


def test_what_others_write_on_the_node_wakes_nobody() -> None:
    async def story() -> World:
        world = await asleep()
        for _ in range(5):
            people.touch(world, "n1")
            people.cordon(world, "n1")
            await asyncio.sleep(20.0)
        world.stop()
        return world

    assert not wakes(run_virtually(story()))


def test_a_changed_config_map_is_in_force_within_five_minutes() -> None:
    async def story(seed: int) -> None:
        world = await asleep(seed=seed)
        await asyncio.sleep(world.chance.uniform(0.0, 400.0))
        world.touch_config_map()
        assert await until_awake(world, CONFIG_SECONDS) > 0
        assert wakes(world)[0][1] == "the ConfigMap has changed"
        world.stop()

    for seed in range(5):
        run_virtually(story(seed))


@pytest.mark.parametrize("seconds", [2.0, 100.0])
def test_a_node_that_is_deleted_and_registered_again_begins_anew(seconds: float) -> None:
    async def story() -> World:
        world = await asleep()
        world.server.remove("nodes", "n1", actor="person")
        await asyncio.sleep(seconds)
        people.register(world, "n1")
        await asyncio.sleep(60.0)
        assert process_of(world).is_asleep
        await world.all_need_a_reboot()
        await world.until_home(900.0)
        world.stop()
        return world

    world = run_virtually(story())
    assert world.home_at is not None, world.report([])
    assert not [each for each in world.verdict() if each.startswith(("asleep", "taint", "claim"))], world.report([])


# The API server --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [None, *CutOff])
def test_while_the_api_server_cannot_be_reached_the_agent_sleeps_and_then_sees_what_it_missed(
    how: CutOff | None,
) -> None:
    async def story() -> World:
        world = await asleep()
        if how is None:
            world.agents.go_down(120.0)
        else:
            world.agents.cut_off["n1"] = (world.now + 120.0, how)
        await asyncio.sleep(60.0)
        people.annotate(world, "n1", people.REQUEST, "reboot")
        await asyncio.sleep(59.0)
        assert process_of(world).is_asleep
        await until_awake(world, AFTER_AN_OUTAGE_SECONDS + 1.0)
        world.stop()
        return world

    assert wakes(run_virtually(story()))[0][1] == "the Node has changed"


@pytest.mark.parametrize(
    ("status", "times", "why"),
    [
        (401, 1, None),
        (401, 2, "the API server refuses the agent (401)"),
        (403, 1, None),
        (403, 3, "the API server refuses the agent (403)"),  # the first only says that the Node may not be watched
        (404, 1, "the Node does not exist"),
        (410, 3, None),
        (429, 3, None),
        (503, 3, None),
    ],
)
def test_answers_that_an_agent_must_see_wake_it(status: int, times: int, why: str | None) -> None:
    async def story() -> World:
        world = await asleep()
        answer, left = world.server.answer, [times]

        def refuse(request: Request, actor: str) -> Any:
            if actor == "careen-agent-n1" and "/nodes" in request.path and process_of(world).is_asleep and left[0]:
                left[0] -= 1
                return world.server.refusal(status, "no")
            return answer(request, actor)

        world.server.answer = refuse  # type: ignore[method-assign]
        world.agents.break_connections()
        await asyncio.sleep(1100.0)
        assert not left[0] or why
        world.stop()
        return world

    found = [each for _, each in wakes(run_virtually(story())) if each != "a look is due"]
    assert found == ([why] if why else [])


@pytest.mark.parametrize("ends", ["at once", "after one event"])
def test_a_server_that_ends_every_watch_gets_few_requests(ends: str) -> None:
    async def story() -> int:
        counted: Counter[str] = Counter()

        def plan(_number: int, node: str, _request: Request) -> None:
            counted[node] += 1
            if ends == "at once":
                world.agents.break_connections()

        world = await asleep(plan=lambda *_: None)
        world.agents.plan = plan  # type: ignore[assignment]

        async def end() -> None:
            while True:
                await asyncio.sleep(0.2)
                if ends == "after one event":
                    people.annotate(world, "n1", "theirs-too", str(world.now))
                world.agents.break_connections()

        ending = asyncio.ensure_future(end())
        await asyncio.sleep(600.0)
        ending.cancel()
        world.stop()
        return counted["n1"]

    assert run_virtually(story()) <= 30


def test_a_store_restored_from_a_backup_is_noticed_by_what_was_seen_asleep() -> None:
    """The Node was as in the backup when the agent fell asleep. Only the sleeping agent has seen a later version."""

    async def story() -> World:
        world = await asleep(THREE)
        backup = world.server.store.backup()
        await asyncio.sleep(10.0)
        for name in THREE.names:
            people.touch(world, name)
        await asyncio.sleep(10.0)
        world.fleet.report = lambda *_, **__: None  # type: ignore[method-assign]
        restore(world, backup)
        await asyncio.sleep(75.0)
        world.stop()
        return world

    world = run_virtually(story())
    assert world.lock().get("nodeID") == "manual", world.report([])
    assert "has resourceVersion" in wakes(world)[0][1]


# Clocks and files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hours", [-24, 24, 24 * 365])
def test_a_jump_of_the_wall_clock_wakes_nobody_and_delays_no_taint(hours: int) -> None:
    async def story() -> World:
        world = await asleep()
        world.agents.clocks["n1"].skew_seconds = 3600.0 * hours
        await asyncio.sleep(60.0)
        assert process_of(world).is_asleep
        world.fleet.hosts["n1"].needs_reboot()
        await asyncio.sleep(10.0)
        assert phase(world) != "Idle"
        world.stop()
        return world

    assert len(wakes(run_virtually(story()))) == 1


def test_a_look_that_hangs_makes_the_need_unknown_and_then_the_agent_unhealthy_but_wakes_it_not() -> None:
    async def story() -> World:
        world = await asleep()
        looks = process_of(world).looks
        assert looks is not None
        world.fleet.hosts["n1"].hangs = True
        await asyncio.sleep(50.0)
        assert (looks.is_need_unknown, looks.late) == (False, "")
        await asyncio.sleep(20.0)
        assert (looks.is_need_unknown, looks.late) == (True, "")
        await asyncio.sleep(60.0)
        assert (looks.is_need_unknown, bool(looks.late)) == (True, True)
        assert not wakes(world)
        world.fleet.hosts["n1"].needs_reboot()
        world.fleet.hosts["n1"].hangs = False
        await asyncio.sleep(5.0)
        assert (looks.is_need_unknown, looks.late) == (False, "")
        assert phase(world) != "Idle"
        world.stop()
        return world

    run_virtually(story())


def test_an_agent_that_should_have_woken_is_unhealthy_a_minute_later() -> None:
    async def story() -> None:
        world = await asleep()
        process = process_of(world)
        looks = process.looks
        assert looks is not None
        process.freeze(2 * 3600.0)
        await asyncio.sleep(max(0.0, looks.left_seconds) + 59.0)
        assert looks.late == ""
        await asyncio.sleep(2.0)
        assert looks.late == "asleep for too long"
        world.stop()

    run_virtually(story())


# Changes of form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("instant", Instant)
@pytest.mark.parametrize("lies_down_again", [False, True])
def test_a_process_that_dies_at_any_instant_of_a_change_of_form_breaks_no_rule(
    instant: Instant, lies_down_again: bool
) -> None:
    """Also as it falls asleep and wakes a second time, after a change of the ConfigMap."""

    async def story() -> World:
        world = World(TWO, prepare=lambda world: None if lies_down_again else doom(world))
        await asyncio.sleep(30.0)
        if lies_down_again:
            world.touch_config_map()
            doom(world)
            await asyncio.sleep(320.0)
        await world.all_need_a_reboot()
        await world.until_home(900.0)
        world.stop()
        return world

    def doom(world: World) -> None:
        world.agents.doomed["n1"] = instant

    world = run_virtually(story())
    assert world.agents.died_at == {instant.name: 1}
    assert world.verdict() == [], world.report(world.verdict())


@pytest.mark.parametrize("seconds", [0.0, 0.5, 1.0, 1.5, 1.9, 2.1, 2.3, 2.5, 3.0])
def test_a_sleeping_agent_that_dies_about_when_its_need_appears_taints_within_ten_seconds(seconds: float) -> None:
    async def story() -> World:
        world = await asleep()
        world.fleet.hosts["n1"].needs_reboot()
        await asyncio.sleep(seconds)
        people.crash_agent(world, "n1")
        await world.until_home(900.0)
        world.stop()
        return world

    world = run_virtually(story())
    assert world.verdict() == [], world.report(world.verdict())


def test_a_handover_that_cannot_be_read_leads_to_an_ordinary_start() -> None:
    async def story() -> World:
        world = await asleep()
        world.agents.spoilt.update(TWO.names)
        await world.all_need_a_reboot()
        await world.until_home(900.0)
        world.stop()
        return world

    world = run_virtually(story())
    assert not world.agents.spoilt
    assert world.verdict() == [], world.report(world.verdict())


def test_an_agent_that_somebody_wakes_all_the_time_changes_its_form_six_times_an_hour_and_stays_attentive() -> None:
    async def story() -> World:
        world = await asleep()
        for number in range(110):
            people.annotate(world, "n1", "careen.dev/retry", str(number))
            await asyncio.sleep(30.0)
        fell_asleep = [at for at, node, why in world.agents.changes if node == "n1" and not why]
        assert len(fell_asleep) == 6
        world.fleet.hosts["n1"].needs_reboot()
        await asyncio.sleep(10.0)
        assert phase(world) != "Idle"
        world.stop()
        return world

    assert not run_virtually(story()).agents.breaches


def test_a_look_that_finds_nothing_costs_three_requests_and_happens_three_times_an_hour() -> None:
    async def story() -> tuple[World, Counter[str]]:
        counted: Counter[str] = Counter()

        def plan(_number: int, _node: str, request: Request) -> None:
            process = process_of(world, _node)
            what = "config" if "configmaps" in request.path else "watch" if "watch" in request.query else "other"
            counted[f"{'asleep' if process.is_asleep else 'awake'} {what}"] += 1

        world = await asleep(Shape(nodes=3))
        world.agents.plan = plan  # type: ignore[assignment]
        await asyncio.sleep(6 * 3600.0)
        world.stop()
        return world, counted

    world, counted = run_virtually(story())
    found = sum(len(wakes(world, name)) for name in THREE.names)
    assert {why for name in THREE.names for _, why in wakes(world, name)} == {"a look is due"}
    assert found <= 3 * 6 * 4
    assert counted["awake other"] <= 2 * found
    assert counted["asleep other"] == 0
    assert counted["asleep watch"] <= found + 3
    assert counted["asleep config"] <= 3 * 6 * 13


def test_the_fleet_notices_a_write_that_rests_on_the_handover_alone() -> None:
    """The law that the storms check can fail."""

    async def story() -> World:
        world = await asleep()
        process = process_of(world)
        patch = Request(method="PATCH", path="/api/v1/nodes/n1", body=b'{"metadata":{"annotations":{"a":"b"}}}')
        await world.agents.wire(process).send(patch)
        process.change_form(is_asleep=False)
        await world.agents.wire(process).send(patch)
        process.has_read.add("nodes")
        await world.agents.wire(process).send(patch)
        world.stop()
        return world

    assert [each.startswith("asleep") for each in run_virtually(story()).verdict(but=())].count(True) == 2
