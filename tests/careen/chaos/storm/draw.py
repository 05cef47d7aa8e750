"""Draws a storm (a random series of faults and events in a simulated fleet) from a seed. There are eleven kinds of
storms (`WEATHER`), for example `people at nodes`. Each kind has its own events and lists the rules that these events
themselves break."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from careen.cluster.wire.transport import Request
from drydock.zoo import IN_STORMS
from tests.careen.chaos.fleet import admission, operations, people, sleep_acts
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.storm.story import Event, Story

STORM_SECONDS = 400.0
_ACTING_SECONDS = 250.0

Act = people.Act
ACTS: Mapping[str, Act] = {
    act.__name__: act
    for act in (
        *people.SETTINGS,
        *people.NODES,
        *people.LOCKS,
        *people.OBJECTS,
        *people.WORKLOADS,
        *people.MACHINES,
        *operations.NETWORK,
        *operations.MACHINES,
        *operations.WORKLOADS,
        *operations.SETTINGS,
        *operations.RELEASES,
        admission.edit_writes,
        *sleep_acts.SLEEP,
    )
}

REQUESTS: Mapping[str, Callable[[Request], bool]] = {
    "request": lambda _: True,
    "read": lambda request: request.method == "GET",
    "write": lambda request: request.method != "GET" and not request.path.endswith("/events"),
    "write of the lock": lambda request: request.method == "PATCH" and "/daemonsets/" in request.path,
    "write of the Node": lambda request: request.method == "PATCH" and "/nodes/" in request.path,
    "read of the lock": lambda request: request.method == "GET" and "/daemonsets/" in request.path,
    "eviction": lambda request: request.path.endswith("/eviction"),
    "page": lambda request: "continue" in request.query,
}


@dataclass(frozen=True, kw_only=True)
class Weather:
    """One kind of storm. `acts` are the events that such a storm may contain. `but` lists the rules that are not
    checked, because these events themselves break the rules."""

    acts: Sequence[Act] = ()
    most_acts: int = 8
    faults_per_node: float = 2.0
    has_crashing_daemons: bool = False
    but: tuple[str, ...] = ()


# Rules that some storms do not check, because people or machines break them there. Every storm checks the weaker rules
# about the instants at which hosts are asked to reboot and at which agents remove claims: `reboot`, `asked`, `early`.
_HANDS = ("taint", "finished", "once", "loop")
# A person may release any claim.
_UNSETTLED = ("settled",)
_LOCK_HANDS = (*_HANDS, "reported", "claim", "claims", "release", "theft")
_EVERYTHING = (
    *_LOCK_HANDS,
    "tidy",
    "drained",
    "hold",
    *_UNSETTLED,
    "explained",
    "own-node",
    "nodes-down",
    "foreign",
)

WEATHER: Mapping[str, Weather] = {
    "faults alone": Weather(faults_per_node=6.0, but=("taint",)),
    "people at nodes": Weather(
        acts=people.NODES, but=(*_LOCK_HANDS, "tidy", "drained", "hold", *_UNSETTLED, "explained")
    ),
    # Removing the claim id from an entry releases that claim.
    "people at the lock": Weather(acts=people.LOCKS, but=(*_LOCK_HANDS, *_UNSETTLED)),
    "workloads": Weather(
        acts=(
            *people.WORKLOADS,
            *operations.WORKLOADS,
            *operations.WORKLOADS,
            people.crash_agent,
            people.freeze_agent,
            people.touch,
        ),
        most_acts=12,
        has_crashing_daemons=True,
        but=("taint",),
    ),
    "machines": Weather(
        acts=(*people.MACHINES, *operations.MACHINES, *operations.MACHINES),
        but=(*_HANDS, "claim", "claims", "release", "nodes-down"),
    ),
    "lost objects": Weather(
        acts=people.OBJECTS, most_acts=5, but=(*_LOCK_HANDS, "tidy", *_UNSETTLED, "explained", "own-node", "drained")
    ),
    "settings": Weather(
        acts=(*people.SETTINGS, *operations.SETTINGS * 3, people.crash_agent, people.outage),
        but=("taint",),
    ),
    "network": Weather(
        acts=(*operations.NETWORK, operations.cut_off, people.freeze_agent, people.outage),
        faults_per_node=4.0,
        but=("taint",),
    ),
    "releases": Weather(acts=(*operations.RELEASES, people.crash_agent, operations.cut_off), but=("taint",)),
    "admission edits my writes": Weather(
        acts=(admission.edit_writes, admission.edit_writes, people.crash_agent, people.touch),
        most_acts=5,
        faults_per_node=1.0,
        but=tuple(rule for rule in _EVERYTHING if rule != "nodes-down"),
    ),
    # Without edits of writes: what a record without its field forgets, no agent can put back.
    "everything": Weather(
        acts=tuple(act for act in ACTS.values() if act not in (admission.edit_writes, *sleep_acts.SLEEP)),
        most_acts=16,
        faults_per_node=3.0,
        but=_EVERYTHING,
    ),
}


_ZOO_EVERY = 3


def story_of(seed: int) -> Story:
    """Draw the storm of this seed. Eleven successive seeds give the eleven kinds of storms. In one of ten storms,
    scheduler_core computes the forecasts. In all other storms, a test double allows every drain."""
    chance = random.Random(seed)
    name = list(WEATHER)[seed % len(WEATHER)]
    weather = WEATHER[name]
    nodes = chance.randint(5, 8)
    names = [f"n{number}" for number in range(1, nodes + 1)]
    zones = chance.choice((0, 0, 2, 3))
    return Story(
        seed=seed,
        weather=name,
        nodes=nodes,
        zones=zones,
        control_planes=chance.choice((0, 0, 1, 3)),
        concurrency=chance.choice((1, 2, 3)),
        page_size=chance.choice((0, 0, 2, 5)),
        has_real_forecast=seed // len(WEATHER) % 10 == seed % len(WEATHER) % 10,
        older=tuple(each for each in names if chance.random() < 0.5) if name in ("releases", "everything") else (),
        crashing_daemons=tuple(each for each in names if weather.has_crashing_daemons and chance.random() < 0.3),
        zoo=_zoo(random.Random(f"{seed} zoo")),
        events=tuple(
            sorted(
                [
                    *_needs(names, chance),
                    *_acts(weather, names, chance),
                    *_faults(weather, names, chance),
                    *_nights(names, random.Random(f"{seed} sleep")),
                ],
                key=lambda event: event.at,
            )
        ),
    )


def _zoo(chance: random.Random) -> tuple[str, ...]:
    """Draw one or two citizens of the zoo in a third of the storms. The draws are apart from those of the storm, so
    that a citizen changes no other event."""
    if chance.randrange(_ZOO_EVERY) != 0:
        return ()
    found = chance.sample(IN_STORMS, chance.randint(1, 2))
    # A kubelet shuts down in one way only, and the drain cleaner comes with Strimzi.
    is_twice = any(all(name.startswith(kind) for name in found) for kind in ("graceful-shutdown", "strimzi"))
    return tuple(found[:1] if is_twice else found)


def _needs(names: list[str], chance: random.Random) -> list[Event]:
    """Draw the hosts that need a reboot (about 80 percent, and at least one), and the time when each of these hosts
    begins to need a reboot."""
    asking = [name for name in names if chance.random() < 0.8] or names[:1]
    return [Event(at=_at(chance, 3.0, 60.0), node=name, what="need") for name in asking]


def _nights(names: list[str], chance: random.Random) -> list[Event]:
    """Draw what disturbs sleeping agents, in half of the storms: also late needs. The draws are apart
    from those of the storm."""
    return _drawn(sleep_acts.SLEEP, 4, names, chance, begins=0.0) if chance.random() >= 0.5 else []


def _acts(weather: Weather, names: list[str], chance: random.Random) -> list[Event]:
    return _drawn(weather.acts, weather.most_acts, names, chance, begins=3.0) if weather.acts else []


def _drawn(acts: Sequence[Act], most: int, names: list[str], chance: random.Random, *, begins: float) -> list[Event]:
    return [
        Event(
            at=_at(chance, begins, _ACTING_SECONDS),
            node=chance.choice(names),
            what=chance.choice(acts).__name__,
            seed=chance.getrandbits(32),
        )
        for _ in range(chance.randint(1, most))
    ]


def _faults(weather: Weather, names: list[str], chance: random.Random) -> list[Event]:
    count = chance.randint(0, round(2 * weather.faults_per_node * len(names)))
    return [
        Event(
            at=_at(chance, 0.0, _ACTING_SECONDS),
            node=chance.choice(names),
            what=(fault := chance.choice(list(Fault))).name,
            of="page" if fault is Fault.EXPIRED else chance.choice([each for each in REQUESTS if each != "page"]),
        )
        for _ in range(count)
    ]


def _at(chance: random.Random, begin: float, end: float) -> float:
    return round(chance.uniform(begin, end), 2)
