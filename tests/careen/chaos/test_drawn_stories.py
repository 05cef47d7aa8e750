"""Roll-outs in which a seed draws faults, and acts of people right after a phase begins. Storms play such acts at any
time. Also other orders of reboots, hosts that refuse to reboot, and a failure that halts the fleet."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest

from careen.cluster import objects
from careen.cluster.wire.transport import Request
from careen.core.facts.policy import Order
from careen.core.lock import changes, notation
from careen.core.lock.content import LockContent
from careen.plan.rollout_rules import RolloutRules
from scheduler_core.simulation.forecast import Forecast
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import Fault, can_meet
from tests.careen.chaos.fleet.laws import journal_of
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World
from tests.careen.chaos.storm.draw import WEATHER
from tests.careen.chaos.storm.play import come_home

SEEDS = int(os.environ.get("CHAOS_SEEDS", "4"))
BY_PEOPLE = WEATHER["everything"].but
ACTING_SECONDS = 500.0
PHASES = ("Waiting", "Claiming", "Draining", "Rebooting", "Verifying", "Settling", "Failed")

STRIKES = (
    people.recreate_daemonset,
    people.release,
    people.pause,
    people.resume,
    people.hold,
    people.let_go,
    people.uncordon,
    people.cordon,
    people.crash_agent,
    people.forget_need,
    people.need_again,
)


class Drawn:
    """The faults of a roll-out, drawn from its seed until `is_calm`."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.is_calm = False
        self.world: World | None = None

    def plan(self, _number: int, _node: str, request: Request) -> Fault | None:
        assert self.world is not None
        if self.is_calm or self.world.chance.random() >= self.rate:
            return None
        fault = self.world.chance.choice(list(Fault))
        return fault if can_meet(request, fault) else None


async def drawn(
    seed: int,
    shape: Shape,
    trouble: Callable[[World], object] = lambda _: None,
    *,
    rate: float = 0.02,
    seconds: float = 400.0,
) -> World:
    faults = Drawn(rate)
    world = faults.world = World(shape, plan=faults.plan, seed=seed)
    found = trouble(world)
    acting = asyncio.ensure_future(found) if asyncio.iscoroutine(found) else None
    await world.all_need_a_reboot()
    await asyncio.sleep(seconds)
    if acting is not None:
        acting.cancel()
    faults.is_calm = True
    await come_home(world)
    world.stop()
    return world


async def strike(world: World, phase: str, acts: tuple[people.Act, ...]) -> None:
    """Most times that a node enters the phase, let one of the acts happen to it within a second."""
    seen = 0
    while True:
        journal = world.server.store.journal
        for change in journal[seen:]:
            before, after = (each.content if each else {} for each in (change.before, change.after))
            if change.storage[1] == "nodes" and phase_of(after) == phase != phase_of(before):
                if world.chance.random() < 0.3:
                    continue
                act = world.chance.choice(acts)
                name = world.chance.choice(world.shape.names) if act is people.cordon else change.key[1]
                world.note(f"{act.__name__} {name}")
                world.at(world.chance.choice([0.0, 0.02, 0.3, 1.0]), functools.partial(act, world, name))
        seen = len(journal)
        await asyncio.sleep(0.05)


def phase_of(node: object) -> str:
    metadata = node.get("metadata") or {}  # type: ignore[attr-defined]
    return str((metadata.get("annotations") or {}).get("careen.dev/phase", "Idle"))


def breaks_nothing(world: World, *, but: tuple[str, ...] = BY_PEOPLE) -> None:
    broken = [*world.verdict(but=but), *(() if world.is_home() else ["not every node is back"])]
    assert not broken, world.report(broken)


# Orders of reboots -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("concurrency", [1, 2])
def test_with_every_order_each_node_reboots_once_and_the_limit_is_reached(concurrency: int, order: Order) -> None:
    world = run_virtually(drawn(1, Shape(nodes=4, zones=2, concurrency=concurrency, order=order), rate=0.0))
    breaks_nothing(world, but=())
    assert most_claims(world) == concurrency


def most_claims(world: World) -> int:
    return max(len(after) for _, _, after in journal_of(world).lock_writes())


@pytest.mark.parametrize("order", [Order.ZONE, Order.FEWEST_MOVES])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_faults_and_a_lost_lock_break_no_rule_with_another_order(seed: int, order: Order) -> None:
    def lose_the_lock(world: World) -> None:
        world.at(world.chance.uniform(5, 200), lambda: people.recreate_daemonset(world, ""))

    shape = Shape(nodes=4, zones=2, concurrency=2 + seed % 2, order=order)
    breaks_nothing(run_virtually(drawn(7000 + seed, shape, lose_the_lock, rate=0.01 * (1 + seed % 3))))


@pytest.mark.parametrize("order", [Order.OLDEST, Order.ZONE])
@pytest.mark.parametrize("seed", range(3))
def test_the_agents_reboot_their_nodes_in_the_planned_order(seed: int, order: Order) -> None:
    went, foretold = run_virtually(planned(seed, order))
    assert went == foretold


async def planned(seed: int, order: Order) -> tuple[list[str], list[str]]:
    """The order in which nodes drain, and the order that the plan's rules foretell. A claim of another node fills the
    lock until every node is ready and named in the line."""
    start = datetime(2026, 1, 5, tzinfo=UTC)
    world = World(Shape(nodes=4, zones=2, order=order), seed=seed)
    people.edit_lock(world, lambda _: {"nodeID": "elsewhere", "created": "2026-03-04T12:00:00Z"})
    for name in world.shape.names:
        world.at(world.chance.uniform(0, 30), world.fleet.hosts[name].needs_reboot)
    await asyncio.sleep(120.0)
    content = notation.parse(lock_text(world))
    assert isinstance(content, LockContent)
    nodes = [objects.node_view(msgspec.convert(node, objects.Node)) for node in world.server.all("nodes")]
    rules = RolloutRules(nodes, world.policy("n1"), named=content.line.names)
    foretold: list[str] = []
    while waiting := [name for name in world.shape.names if name not in foretold]:
        name = rules.line(waiting, start, lambda _: 0)[0]
        assert rules.refusal(name, start, Forecast(node=name, made_at="")) is None
        rules.claimed(name, start)
        assert rules.late_refusal(name, start) is None
        rules.released(name, start)
        foretold.append(name)
    people.edit_lock(world, lambda _: notation.render(changes.release_by_hand(content, "elsewhere")))
    await world.until_home(900.0)
    world.stop()
    went = [
        change.key[1]
        for change in world.server.store.journal
        if change.storage[1] == "nodes"
        and change.after
        and phase_of(change.after.content) == "Draining" != phase_of(change.before.content if change.before else {})
    ]
    return went, foretold


def lock_text(world: World) -> str | None:
    found = world.server.get("daemonsets", "careen", "careen")
    assert found is not None
    return (found["metadata"].get("annotations") or {}).get(people.LOCK)


# People, right after a phase begins ------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASES[:-1])
@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_acts_of_people_right_after_a_phase_begins_break_no_rule(seed: int, phase: str) -> None:
    shape = Shape(nodes=4, zones=2, concurrency=1 + seed % 2)
    breaks_nothing(run_virtually(drawn(5000 + seed, shape, lambda world: strike(world, phase, STRIKES))))


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_a_record_lost_in_any_phase_breaks_no_rule(seed: int, phase: str) -> None:
    """In the phase Failed, hosts fail, because some refuse to reboot. Some agents die shortly after the loss."""

    def trouble(world: World) -> object:
        world.fleet.shutdown_seconds = (0.1, world.chance.choice([4.0, 40.0]))
        for name in world.shape.names if phase == "Failed" else ():
            world.fleet.hosts[name].behaviour = world.chance.choice(["works", "fails", "silent"])
        return strike(world, phase, (people.wipe_record, people.wipe_record, people.crash_agent))

    shape = Shape(nodes=4, zones=2, concurrency=1 + seed % 2)
    breaks_nothing(run_virtually(drawn(12_100 + seed, shape, trouble, rate=0.01 * (seed % 3))))


# Hosts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(SEEDS))
def test_hosts_that_refuse_or_ignore_the_reboot_break_no_rule(seed: int) -> None:
    def trouble(world: World) -> None:
        for host in world.fleet.hosts.values():
            host.behaviour = world.chance.choice(["works", "fails", "silent"])
            host.need_survives = world.chance.choice([0, 0, 1, 3])

    world = run_virtually(drawn(2000 + seed, Shape(nodes=4, concurrency=1 + seed % 2), trouble))
    breaks_nothing(world, but=WEATHER["machines"].but)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_after_a_failure_no_other_node_reboots_until_a_person_acts(seed: int) -> None:
    world = run_virtually(halted(9000 + seed, rate=0.005 * (seed % 3)))
    breaks_nothing(world, but=WEATHER["machines"].but)


async def halted(seed: int, rate: float) -> World:
    faults = Drawn(rate)
    world = faults.world = World(Shape(nodes=4, concurrency=3), plan=faults.plan, seed=seed)
    stuck = world.chance.choice(world.shape.names)
    world.fleet.hosts[stuck].behaviour = "silent"
    await world.all_need_a_reboot()
    while not any(row.get("failed") for row in world.lock().get("locks", ())):
        assert world.now < 2000, world.report(["a host that never reboots is not marked as failed"])
        await asyncio.sleep(1.0)
    await asyncio.sleep(100.0)  # the others that were at work have finished
    for name in world.shape.names:
        people.need_again(world, name)
    boots = {name: host.boot for name, host in world.fleet.hosts.items()}
    await asyncio.sleep(300.0)
    assert [row["nodeID"] for row in world.lock()["locks"]] == [stuck], world.report([])
    assert {name: host.boot for name, host in world.fleet.hosts.items()} == boots, world.report([])
    faults.is_calm = True
    await come_home(world)
    world.stop()
    return world
