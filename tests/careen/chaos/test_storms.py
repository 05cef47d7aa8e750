"""Faults and people together, drawn from a seed: whatever they do, no rule breaks, and when they stop the fleet
comes home.

A plain run tries a few seeds; `make soak SEEDS=…` as many as one likes. A failure prints its story; the seed
repeats it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from careen.cluster.wire.transport import Request
from careen.core.facts.policy import Budget, BudgetKind
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import OF_READS, Fault
from tests.careen.chaos.fleet.people import Act
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

ZONE_BUDGET = (Budget(kind=BudgetKind.ZONE, limit=1),)
SHAPES = (
    Shape(nodes=1),
    Shape(nodes=2),
    Shape(nodes=3, concurrency=2),
    Shape(nodes=3, concurrency=3, control_planes=3),
    Shape(nodes=4, zones=2, concurrency=2, zone_limit=1, budgets=ZONE_BUDGET),
    Shape(nodes=5, zones=2, concurrency=3, zone_limit=1, control_planes=1, budgets=ZONE_BUDGET),
)
SEEDS = int(os.environ.get("CHAOS_SEEDS", "4"))
STORM_SECONDS = 400.0


@dataclass(frozen=True, kw_only=True)
class Weather:
    """One kind of trouble."""

    acts: Sequence[Act] = ()
    most_acts: int = 6
    fault_rate: float = 0.02
    has_crashing_daemons: bool = False
    but: tuple[str, ...] = ()  # rules of the demo's judge that this trouble itself breaks


# What people do to claims and needs, the demo's judge would lay to the agents; `laws.py` judges these stories
# by their instants.
_HANDS = ("taint", "finished", "once", "loop")
_LOCK_HANDS = (*_HANDS, "told", "claim", "claims", "release", "theft")

WEATHER = {
    "faults alone": Weather(fault_rate=0.06, but=("taint",)),
    "people at nodes": Weather(
        acts=people.NODES, but=(*_LOCK_HANDS, "tidy", "drained", "hold", "settled", "explained")
    ),
    "people at the lock": Weather(acts=people.LOCKS, but=_LOCK_HANDS),
    "workloads": Weather(
        acts=(*people.WORKLOADS, people.crash_agent, people.freeze_agent, people.touch),
        most_acts=10,
        has_crashing_daemons=True,
        but=("taint",),
    ),
    "machines": Weather(acts=people.MACHINES, but=(*_HANDS, "claim", "claims", "settled", "release", "nodes-down")),
    "lost objects": Weather(
        acts=people.OBJECTS, most_acts=4, but=(*_LOCK_HANDS, "tidy", "settled", "explained", "own-node", "drained")
    ),
    "settings": Weather(
        acts=(*people.SETTINGS, *people.SETTINGS, people.crash_agent, people.outage), but=("taint", "settled")
    ),
    "everything": Weather(
        acts=(*people.SETTINGS, *people.NODES, *people.LOCKS, *people.OBJECTS, *people.MACHINES, *people.WORKLOADS),
        most_acts=12,
        fault_rate=0.03,
        but=(*_LOCK_HANDS, "tidy", "drained", "hold", "settled", "explained", "own-node", "nodes-down"),
    ),
}


async def storm(weather: Weather, seed: int) -> World:
    shape = SHAPES[seed % len(SHAPES)]
    is_calm = False

    def plan(_number: int, _node: str, request: Request) -> Fault | None:
        if is_calm or world.chance.random() >= weather.fault_rate:
            return None
        fault = world.chance.choice(list(Fault))
        return fault if request.method != "GET" or fault in OF_READS else None

    world = World(shape, plan=plan, seed=seed)
    chance = world.chance
    for name in shape.names:
        world.at(chance.uniform(3.0, 60.0), world.fleet.hosts[name].needs_reboot)
        if weather.has_crashing_daemons and chance.random() < 0.5:
            world.fleet.add_crashing_daemon(name)
    for _ in range(chance.randint(1, weather.most_acts) if weather.acts else 0):
        act, name, when = (
            chance.choice(weather.acts),
            chance.choice(shape.names),
            chance.uniform(3.0, STORM_SECONDS / 2),
        )
        world.at(when, lambda act=act, name=name: (world.note(f"{act.__name__} {name}"), act(world, name)))
    await asyncio.sleep(STORM_SECONDS)
    is_calm = True
    world.note("calm")
    people.calm(world)
    for _ in range(10):
        people.help_the_failed(world)
        await world.until_home(200.0)
        if world.is_home():
            break
    world.stop()
    return world


@pytest.mark.timeout(0)
@pytest.mark.parametrize("weather", WEATHER.values(), ids=WEATHER.keys())
def test_no_weather_breaks_a_rule_or_keeps_the_fleet_from_coming_home(weather: Weather) -> None:
    first = int(os.environ.get("CHAOS_FIRST", "0"))
    for seed in range(first, first + SEEDS):
        world = run_virtually(storm(weather, seed))
        broken = world.verdict(but=weather.but)
        assert not broken, f"seed {seed}, {world.shape}:\n{world.told(broken)}"
