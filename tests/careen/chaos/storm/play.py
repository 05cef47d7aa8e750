"""Plays a storm (random faults and events in a simulated fleet) to its end, and checks whether a rule broke."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

from careen.agent import observe
from careen.cluster.wire.transport import Request
from careen.core.facts.phases import MOVES
from tests.careen.chaos.fleet import admission, older, operations, people, sleep_acts
from tests.careen.chaos.fleet.agents import FROZEN_SECONDS, Fault, can_meet
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import World
from tests.careen.chaos.storm.draw import ACTS, REQUESTS, STORM_SECONDS, WEATHER
from tests.careen.chaos.storm.story import Event, Story

_ROUNDS_HOME, _ROUND_SECONDS = 12, 250.0

# How late an answer to each of these may be.
SLOW_SECONDS = {Fault.SLOW.name: 12.0, **{each.name: seconds for each, seconds in FROZEN_SECONDS.items()}}


@dataclass
class Tally:
    """Counts what happened in one or more storms, for example how many requests the agents sent and how many reboots
    took place. The method `add` adds the counts of another tally."""

    storms: int = 0
    virtual_seconds: float = 0.0
    requests: int = 0
    reboots: int = 0
    real_forecasts: int = 0
    lost_by_older: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)
    moves: Counter[str] = field(default_factory=Counter)
    citizens: Counter[str] = field(default_factory=Counter)
    wakes: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class Outcome:
    story: Story
    broken: list[str]
    tally: Tally
    trace: tuple[str, ...] = ()

    @property
    def laws(self) -> frozenset[str]:
        """Return the names of the broken rules, without times and details."""
        return frozenset(each.split(":", 1)[0] for each in self.broken)


def play(story: Story) -> Outcome:
    """Play the storm and return its outcome. An error in the test harness counts as a broken rule, so that `shrink` can
    also shorten a storm that causes an error."""
    before = older.dropped
    try:
        with older.side_by_side(), _repeatable(story.seed):
            world = run_virtually(_storm(story))
    except Exception as error:
        return Outcome(story, [f"harness: {error!r}"], Tally(storms=1), tuple(traceback.format_exception(error)))
    late = max((SLOW_SECONDS.get(each.what, 0.0) for each in story.events), default=0.0)
    broken = world.verdict(but=WEATHER[story.weather].but, answer_seconds=late)
    tally = _tally(story, world)
    tally.lost_by_older = older.dropped - before
    return Outcome(story, broken, tally, tuple(world.agents.trace) if broken else ())


@contextmanager
def _repeatable(seed: int) -> Iterator[None]:
    """Draw claim ids from the seed and not from the system's random source, so that a failure repeats exactly."""
    chance = random.Random(seed)
    ids = SimpleNamespace(token_hex=lambda size: chance.randbytes(size).hex())
    with mock.patch.object(observe, "secrets", ids):
        yield


class _Faults:
    """The faults of a storm. Each fault waits until its time, and then hits the first suitable request of the agent on
    the fault's node."""

    def __init__(self, story: Story) -> None:
        self.is_calm = False
        self.world: World | None = None
        self._waiting: dict[str, list[Event]] = defaultdict(list)
        for event in sorted((each for each in story.events if each.is_fault), key=lambda each: each.at):
            self._waiting[event.node].append(event)

    def plan(self, _number: int, node: str, request: Request) -> Fault | None:
        """Return the fault that hits this request, or None."""
        assert self.world is not None
        due = [] if self.is_calm else [each for each in self._waiting[node] if each.at <= self.world.now]
        met = next((each for each in due if self._is_for(each, request)), None)
        if met is None:
            return None
        self._waiting[node].remove(met)
        return Fault[met.what]

    def _is_for(self, event: Event, request: Request) -> bool:
        fault = Fault[event.what]
        if fault is Fault.STALE and self.world and self.world.agents.answered_before(request) is None:
            return False
        return REQUESTS[event.of or "request"](request) and can_meet(request, fault)


async def _storm(story: Story) -> World:
    faults = _Faults(story)
    world = World(story.shape, plan=faults.plan, seed=story.seed, older=story.older)
    faults.world = world
    for name in story.crashing_daemons:
        world.fleet.add_crashing_daemon(name)
    for event in story.events:
        if not event.is_fault:
            world.at(event.at, lambda event=event: _happen(world, event))
    await asyncio.sleep(STORM_SECONDS)
    faults.is_calm = True
    await come_home(world)
    world.stop()
    return world


async def come_home(world: World) -> None:
    """Undo what people did, and wait until every node is idle again. Failed nodes get new attempts."""
    world.note("calm")
    people.calm(world)
    operations.calm(world)
    admission.calm(world)
    sleep_acts.calm(world)
    for _ in range(_ROUNDS_HOME):
        people.help_the_failed(world)
        await world.until_home(_ROUND_SECONDS)
        if world.is_home():
            break


def _happen(world: World, event: Event) -> None:
    world.note(f"{event.what} {event.node}")
    if event.what == "need":
        world.fleet.hosts[event.node].needs_reboot()
        return
    world.chance = random.Random(event.seed)
    ACTS[event.what](world, event.node)


def _tally(story: Story, world: World) -> Tally:
    return Tally(
        storms=1,
        virtual_seconds=world.now,
        requests=world.agents.requests,
        reboots=sum(event.what == "booted" for event in world.fleet.log),
        real_forecasts=sum(each.made for each in world.forecasts),
        faults=Counter(world.agents.met),
        acts=Counter(event.what for event in story.events if not event.is_fault),
        moves=_moves(world),
        citizens=Counter(story.zoo),
        wakes=Counter(why.partition(":")[0] for _, _, why in world.agents.changes if why),
        deaths=Counter(world.agents.died_at),
    )


def _moves(world: World) -> Counter[str]:
    """Count how often agents wrote each phase change, for example `Draining → Rebooting`. Changes that the phase table
    does not contain are left out."""
    found: Counter[str] = Counter()
    for change in world.server.store.journal:
        if change.storage[1] != "nodes" or change.before is None or change.after is None:
            continue
        before, after = (_phase(each.content) for each in (change.before, change.after))
        if (before, after) in MOVES and change.actor.startswith("careen-agent-"):
            found[f"{before} → {after}"] += 1
    return found


def _phase(node: Any) -> str:
    return str((node["metadata"].get("annotations") or {}).get("careen.dev/phase", "Idle"))
