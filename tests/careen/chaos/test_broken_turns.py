"""The turns fail for a while or for ever. The agent's node returns to service, the roll-out
continues on the other nodes, and no rule breaks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from careen.agent import observe
from careen.cluster.wire.transport import Request
from careen.core import decide
from careen.core.facts.phases import Phase
from careen.core.situation import Situation
from tests.careen.chaos.fleet import agents, people
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

WORDS = "https://somebody:secret@example.org"
TOLERATED = ("broken-turns",)


class Fault:
    """Makes each wrapped function of the agent raise an error for one node while the fault is switched on."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.is_on = True
        self.times = 0

    def strike(self, node: str) -> None:
        if self.is_on and node == self.node:
            self.times += 1
            raise KeyError(WORDS)


@contextmanager
def broken_step(phase: Phase, fault: Fault) -> Iterator[None]:
    step = decide.STEPS[phase]

    def breaks(situation: Situation) -> Any:
        fault.strike(situation.node.name)
        return step(situation)

    decide.STEPS[phase] = breaks
    try:
        yield
    finally:
        decide.STEPS[phase] = step


def annotations(world: World, name: str) -> dict[str, str]:
    return ((world.server.get("nodes", name) or {}).get("metadata") or {}).get("annotations") or {}


def is_cordoned(world: World, name: str) -> bool:
    return bool((world.server.get("nodes", name) or {}).get("spec", {}).get("unschedulable"))


async def until(world: World, what: Callable[[], bool], longest_seconds: float) -> float:
    """Wait until `what` returns true, and return the seconds that this took. Fails after `longest_seconds`."""
    began = world.now
    while not what():
        assert world.now - began < longest_seconds, world.report(
            [f"the condition was not met within {longest_seconds} s"]
        )
        await asyncio.sleep(0.25)
    return world.now - began


@pytest.mark.parametrize("phase", [Phase.CLAIMING, Phase.DRAINING])
def test_a_node_whose_agent_fails_is_uncordoned_and_the_roll_out_continues(phase: Phase) -> None:
    """Each round of the loop of n1's agent fails. The agent removes the cordon and releases the claim, so that n2 can
    reboot."""
    fault = Fault("n1")

    async def story() -> World:
        world = World(Shape(nodes=2))
        await world.all_need_a_reboot()
        await until(world, lambda: fault.times > 0, 120)
        await until(world, lambda: annotations(world, "n1").get("careen.dev/phase") == "Failed", 90)
        assert not is_cordoned(world, "n1")
        assert WORDS not in str(annotations(world, "n1")), "an error's own text may contain a secret"
        await until(world, lambda: world.fleet.hosts["n2"].boot == 2, 200)
        fault.is_on = False
        await world.until_home(600.0)
        world.stop()
        return world

    with broken_step(phase, fault):
        world = run_virtually(story())
    assert not (broken := world.verdict(but=TOLERATED)), world.report(broken)


@pytest.mark.parametrize("seconds", [2.0, 20.0])
def test_an_agent_that_fails_for_seconds_delays_the_reboot_but_continues_the_drain(seconds: float) -> None:
    """The agent does not undo the drain, and the node never enters the phase Failed."""
    fault = Fault("n1")
    failed: list[str] = []

    async def story() -> World:
        world = World(Shape(nodes=1))
        await world.all_need_a_reboot()
        await until(world, lambda: fault.times > 0, 120)
        world.at(seconds, lambda: setattr(fault, "is_on", False))
        await until(
            world,
            lambda: "the agent's turns break: KeyError in" in annotations(world, "n1").get("careen.dev/reason", ""),
            5,
        )
        while world.fleet.hosts["n1"].boot == 1:
            failed.extend(each for each in [annotations(world, "n1").get("careen.dev/phase", "")] if each == "Failed")
            await asyncio.sleep(0.25)
        await world.until_home(300.0)
        world.stop()
        return world

    with broken_step(Phase.DRAINING, fault):
        world = run_virtually(story())
    assert not failed
    assert not (broken := world.verdict(but=TOLERATED)), world.report(broken)


@pytest.mark.parametrize(
    ("act", "reason"),
    [pytest.param(people.hold, "held", id="a hold"), pytest.param(people.pause, "paused", id="a pause")],
)
def test_a_hold_or_pause_takes_effect_while_the_agents_loop_fails(act: people.Act, reason: str) -> None:
    """A person pauses the roll-out, or sets a hold on the node (an annotation that keeps the node from rebooting). The
    agent undoes the drain within ten seconds, although each round of its loop fails."""
    fault = Fault("n1")

    async def story() -> World:
        world = World(Shape(nodes=1))
        await world.all_need_a_reboot()
        await until(world, lambda: is_cordoned(world, "n1") and fault.times > 0, 120)
        act(world, "n1")
        await until(world, lambda: not is_cordoned(world, "n1"), 10)
        assert reason in annotations(world, "n1")["careen.dev/reason"]
        fault.is_on = False
        people.resume(world, "n1")
        people.let_go(world, "n1")
        await world.until_home(600.0)
        world.stop()
        return world

    with broken_step(Phase.DRAINING, fault):
        world = run_virtually(story())
    assert not (broken := world.verdict(but=TOLERATED)), world.report(broken)


@pytest.mark.parametrize("phase", [Phase.REBOOTING, Phase.VERIFYING, Phase.SETTLING])
def test_a_node_whose_reboot_was_requested_keeps_its_claim_while_its_agent_fails(phase: Phase) -> None:
    """The agent changes neither the cordon nor the claim until the rounds of its loop succeed again."""
    fault = Fault("n1")

    async def story() -> World:
        world = World(Shape(nodes=1))
        world.fleet.hosts["n1"].behaviour = "silent" if phase is Phase.REBOOTING else "works"
        await world.all_need_a_reboot()
        await until(world, lambda: fault.times > 0, 120)
        before = is_cordoned(world, "n1")
        for _ in range(100):
            await asyncio.sleep(1.0)
            assert is_cordoned(world, "n1") is before
            assert [row["nodeID"] for row in world.lock()["locks"]] == ["n1"]
        assert "the agent's turns break" in annotations(world, "n1")["careen.dev/reason"]
        fault.is_on = False
        if phase is Phase.REBOOTING:
            world.fleet.begin_reboot(world.fleet.hosts["n1"])
        await world.until_home(600.0)
        world.stop()
        return world

    with broken_step(phase, fault):
        world = run_virtually(story())
    assert not (broken := world.verdict(but=TOLERATED)), world.report(broken)


def breaks_list_of_pods(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    list_pods_on = observe.list_pods_on

    async def breaks(api: Any, node: str) -> Any:
        fault.strike(node)
        return await list_pods_on(api, node)

    monkeypatch.setattr(observe, "list_pods_on", breaks)


def test_a_node_whose_agent_fails_to_list_pods_is_uncordoned(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault("n2")
    fault.is_on = False
    breaks_list_of_pods(fault, monkeypatch)

    async def story() -> World:
        world = World(Shape(nodes=3, concurrency=2, replicas_per_node=2))
        await world.all_need_a_reboot()
        await until(world, lambda: is_cordoned(world, "n2"), 200)
        fault.is_on = True
        await until(world, lambda: not is_cordoned(world, "n2"), 90)
        assert annotations(world, "n2")["careen.dev/phase"] == "Failed" or world.fleet.hosts["n2"].boot == 2
        await asyncio.sleep(60.0)
        fault.is_on = False
        await world.until_home(600.0)
        world.stop()
        return world

    world = run_virtually(story())
    assert fault.times > 5
    assert not (broken := world.verdict(but=TOLERATED)), world.report(broken)


async def storm_of_breaks(seed: int, faults: list[Fault]) -> World:
    calm = False

    def plan(_number: int, _node: str, request: Request) -> agents.Fault | None:
        if calm or world.chance.random() >= 0.05:
            return None
        drawn = world.chance.choice(list(agents.Fault))
        return drawn if request.method != "GET" or drawn in agents.OF_READS else None

    world = World(Shape(nodes=3, concurrency=2), plan=plan, seed=seed)
    for fault in faults:
        world.at(world.chance.uniform(60.0, 260.0), lambda fault=fault: setattr(fault, "is_on", False))
    await world.all_need_a_reboot()
    await asyncio.sleep(300.0)
    calm = True
    for _ in range(10):
        people.help_the_failed(world)
        await world.until_home(200.0)
        if world.is_home():
            break
    world.stop()
    return world


PHASES = (Phase.CLAIMING, Phase.DRAINING, Phase.REBOOTING, Phase.VERIFYING, Phase.WAITING, Phase.FAILED)
SEEDS = int(os.environ.get("CHAOS_SEEDS", "4"))


@pytest.mark.timeout(0)
def test_combined_faults_of_agents_and_server_break_no_rule() -> None:
    """Each agent fails in some phase for a while, and requests are lost at the same time."""
    first = int(os.environ.get("CHAOS_FIRST", "0"))
    for seed in range(first, first + SEEDS):
        faults = [Fault("n1"), Fault("n2"), Fault("n3")]
        phases = (PHASES[seed % 6], PHASES[(seed // 6) % 6], Phase.DRAINING)
        with (
            broken_step(phases[0], faults[0]),
            broken_step(phases[1], faults[1]),
            broken_step(phases[2], faults[2]),
        ):
            world = run_virtually(storm_of_breaks(seed, faults))
        broken = world.verdict(but=("broken-turns", "taint"))
        assert not broken, f"seed {seed}, {phases}:\n{world.report(broken)}"
