"""Each roll-out has one fault or event. The tests limit how many seconds the roll-out takes, and check the reports of
the agents. In these roll-outs the fleet must recover at once and by itself. In storms (roll-outs with many random
faults), the fleet may recover later and with people's help."""

from __future__ import annotations

import asyncio
import functools
import json
from collections import Counter
from collections.abc import Callable

import pytest

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import Fault, Plan, no_latency, slow_evictions
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World, nothing_goes_wrong

TWO = Shape(nodes=2)
QUIET_SECONDS = 300.0
"""The time limit for a roll-out over two or three nodes. Such a roll-out usually takes half of this time, and no
deadline of the policy ends in this time."""
LONG = {
    "reboot_deadline_seconds": 900.0,
    "verify_timeout_seconds": 900.0,
    "settle_timeout_seconds": 900.0,
    "unknown_patience_seconds": 600.0,
}


async def until(world: World, condition: Callable[[], bool], seconds: float = 200.0) -> None:
    end = world.now + seconds
    while not condition():
        assert world.now < end, world.report(["the condition that the test waits for was not met"])
        await asyncio.sleep(0.05)


def phase(world: World, name: str) -> str:
    node = world.server.get("nodes", name) or {"metadata": {}}
    return str((node["metadata"].get("annotations") or {}).get("careen.dev/phase", "Idle"))


def reached(world: World, name: str, wanted: str) -> Callable[[], bool]:
    return lambda: phase(world, name) == wanted


def is_quickly_over(world: World, *, but: tuple[str, ...] = (), seconds: float = QUIET_SECONDS) -> None:
    broken = world.verdict(but=but)
    failed = [node for node in world.shape.names if phase(world, node) == "Failed"]
    broken += [f"{name} failed" for name in failed]
    if world.home_at is None or world.home_at > seconds:
        broken.append(f"the roll-out took until {world.home_at}; the limit is {seconds:.0f} s")
    assert not broken, world.report(broken)


async def a_roll_out(
    shape: Shape,
    trouble: Callable[[World], object],
    *,
    plan: Plan = nothing_goes_wrong,
    policy: dict[str, float] | None = None,
) -> World:
    """Play a roll-out of all nodes, and call `trouble` when it begins. The agents' deadlines are so long that none of
    them expires."""
    world = World(shape, plan=plan)
    for name in shape.names:
        world.settings[name] = {**LONG, **(policy or {})}
    await world.all_need_a_reboot()
    found = trouble(world)
    if asyncio.iscoroutine(found):
        await found
    await world.until_home(1500.0)
    world.stop()
    return world


# Workloads -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["completes", "fails", "cleared"])
def test_the_roll_out_does_not_wait_for_a_job_that_ended(ends: str) -> None:
    world = run_virtually(a_roll_out(TWO, lambda world: [world.fleet.add_job(name, ends) for name in TWO.names]))
    is_quickly_over(world)


def test_a_daemonset_pod_that_was_never_ready_does_not_halt_the_roll_out() -> None:
    world = run_virtually(a_roll_out(TWO, lambda world: [world.fleet.add_crashing_daemon(name) for name in TWO.names]))
    is_quickly_over(world)


async def held_behind_a_slow_webhook(world: World) -> None:
    """Make each eviction take twelve seconds, and let a person put the draining node on hold. Check that the hold takes
    effect within 30 seconds."""
    await until(world, lambda: "Draining" in (phase(world, "n1"), phase(world, "n2")))
    world.agents.latency = slow_evictions
    name = next(name for name in TWO.names if phase(world, name) == "Draining")
    await asyncio.sleep(15.0)
    people.hold(world, name)
    held_at = world.now
    await until(world, lambda: phase(world, name) == "Waiting", 3600.0)
    assert world.now - held_at < 30.0, world.report([f"the hold took effect after {world.now - held_at:.0f} s"])
    assert not any(event.what == "asked" and event.host == name for event in world.fleet.log)
    world.agents.latency = no_latency
    people.let_go(world, name)


@pytest.mark.parametrize("pods", [20, 55])
def test_a_hold_takes_effect_while_evictions_wait_for_a_slow_webhook(pods: int) -> None:
    world = run_virtually(a_roll_out(Shape(nodes=2, replicas_per_node=pods // 2), held_behind_a_slow_webhook))
    is_quickly_over(world, but=("hold",), seconds=600.0)


def test_a_drain_with_a_slow_webhook_completes() -> None:
    world = run_virtually(
        a_roll_out(Shape(nodes=2, replicas_per_node=5), lambda world: setattr(world.agents, "latency", slow_evictions))
    )
    is_quickly_over(world, seconds=900.0)


# Nodes -----------------------------------------------------------------------------------------------------------


async def recreated(world: World, when: str) -> None:
    await until(world, lambda: any(phase(world, name) == when for name in world.shape.names))
    name = next(name for name in world.shape.names if phase(world, name) == when)
    world.server.remove("nodes", name, actor="person")
    world.fleet.register(name)


@pytest.mark.parametrize("when", ["Claiming", "Draining"])
def test_a_node_recreated_during_its_drain_does_not_delay_the_roll_out(when: str) -> None:
    world = run_virtually(a_roll_out(Shape(nodes=3), functools.partial(recreated, when=when)))
    is_quickly_over(world, but=("claim", "claims", "release", "taint", "finished", "tidy", "explained", "own-node"))


async def wiped_while_waiting(world: World, spoilt: str | None) -> None:
    """Remove or corrupt the annotation with the progress of a waiting node, and end its host's need of a reboot.
    Only the taint's key and its field manager then show that the taint was set by careen."""
    await until(world, lambda: all(phase(world, name) != "Idle" for name in TWO.names))
    name = next(name for name in TWO.names if phase(world, name) == "Waiting")
    people.hold(world, name)
    world.fleet.hosts[name].has_need = False
    people.annotate(world, name, "careen.dev/progress", spoilt)
    people.let_go(world, name)


def test_the_taint_of_a_waiting_node_is_removed_even_if_its_record_annotation_is_lost() -> None:
    world = run_virtually(a_roll_out(TWO, functools.partial(wiped_while_waiting, spoilt=None)))
    is_quickly_over(world, but=("once", "finished", "tidy", "explained"))


async def wiped_while_draining(world: World) -> None:
    await until(world, lambda: any(phase(world, name) == "Draining" for name in TWO.names))
    people.wipe_record(world, next(name for name in TWO.names if phase(world, name) == "Draining"))


def test_a_draining_node_that_loses_its_record_annotation_does_not_delay_the_roll_out() -> None:
    world = run_virtually(a_roll_out(TWO, wiped_while_draining))
    is_quickly_over(
        world,
        but=(
            "claim",
            "claims",
            "release",
            "taint",
            "finished",
            "tidy",
            "explained",
            "settled",
            "service",
            "theft",
            "drained",
            "loop",
        ),
    )


# Processes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen_seconds", [60.0, 90.0, 150.0])
@pytest.mark.parametrize("when", ["Claiming", "Draining", "Rebooting", "Verifying", "Settling"])
def test_an_agent_that_was_suspended_continues_with_the_current_state_of_the_cluster(
    when: str, frozen_seconds: float
) -> None:
    """The agent is suspended after its first read in the given phase. When it continues, everything that it has read is
    outdated."""
    frozen: list[str] = []

    def freezes(world: World) -> None:
        def plan(_number: int, node: str, request: Request) -> Fault | None:
            if not frozen and request.method == "GET" and phase(world, node) == when:
                frozen.append(node)
                for process in world.agents.processes:
                    if process.node == node:
                        process.freeze(frozen_seconds)
            return None

        world.agents.plan = plan

    world = run_virtually(a_roll_out(Shape(nodes=3, concurrency=2), freezes))
    assert frozen
    is_quickly_over(world, but=("taint",), seconds=QUIET_SECONDS + frozen_seconds)


async def doubled_while_draining(world: World) -> None:
    """Start a second agent on each node while the node drains. Both agents announce the reboot by a patch of the Node.
    The patch that is sent first is delayed, so that the server receives it after the patch of the other agent."""
    delayed: set[str] = set()

    def latency(node: str, request: Request) -> float:
        if moves_the_record(request) != "Rebooting" or node in delayed:
            return 0.0
        delayed.add(node)
        return 5.0

    world.agents.latency = latency
    world.fleet.shutdown_seconds = (12.0, 15.0)
    left = set(world.shape.names)
    while left:
        await until(world, lambda: any(phase(world, name) == "Draining" for name in left), 600.0)
        for name in [name for name in left if phase(world, name) == "Draining"]:
            left.remove(name)
            world.agents.start(name)


def conflicts(world: World, name: str) -> int:
    return sum(
        1
        for line in world.agents.trace
        if f" {name}: PATCH {name} 409 " in line and '"careen.dev/phase":"Rebooting"' in line
    )


@pytest.mark.parametrize("nodes", [2, 4])
def test_two_agents_that_announce_the_same_reboot_ask_the_host_once(nodes: int) -> None:
    """The simulation has no lock file on the host that would stop the second agent. A second agent can run after the
    forced deletion of a pod whose process continues."""
    world = run_virtually(a_roll_out(Shape(nodes=nodes, concurrency=nodes - 1), doubled_while_draining))
    is_quickly_over(world)
    assert all(conflicts(world, name) for name in world.shape.names), "the announcements did not overlap"
    asked = Counter((event.host, event.boot_id) for event in world.fleet.log if event.what == "asked")
    assert set(asked.values()) == {1}, asked


# Reports ----------------------------------------------------------------------------------------------------

ONCE_EACH = frozenset({"DrainStarted", "Rebooted", "GivenBack", "Released"})


def sent_events(world: World) -> Counter[tuple[str, str]]:
    return Counter((each.node, each.reason) for each in world.agents.sent_events if each.reason in ONCE_EACH)


def moves_the_record(request: Request) -> str:
    """Return the phase that this request writes to a Node, or an empty text if the request does not write the record
    (the annotation with the reboot's progress)."""
    if request.method != "PATCH" or "/nodes/" not in request.path:
        return ""
    annotations = json.loads(request.body or b"{}")["metadata"].get("annotations") or {}
    return (annotations.get("careen.dev/phase") or "Idle") if "careen.dev/progress" in annotations else ""


@pytest.mark.parametrize(
    "fault",
    [
        Fault.CONFLICT,
        Fault.LOST_BEFORE,
        Fault.LOST_AFTER,
        Fault.LATE,
        Fault.FAILED,
        Fault.FAILED_AFTER,
        Fault.THROTTLED,
    ],
)
def test_each_phase_change_sends_one_event_even_if_its_first_patch_fails(fault: Fault) -> None:
    met: set[tuple[str, str]] = set()

    def plan(_number: int, node: str, request: Request) -> Fault | None:
        move = moves_the_record(request)
        if not move or (node, move) in met:
            return None
        met.add((node, move))
        return fault

    world = run_virtually(a_roll_out(TWO, lambda _world: None, plan=plan))
    is_quickly_over(world)
    assert len(met) > 8
    assert sent_events(world) == Counter({(name, reason): 1 for name in TWO.names for reason in ONCE_EACH}), (
        world.report([str(sent_events(world))])
    )
