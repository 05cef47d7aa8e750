"""The cluster of the roll-out: 12 nodes in 3 zones, 7 controllers, 5 budgets. A seed determines the details.

Seed 0 is the reference: 99 pods, 65 % of the cpu requested, every need at the same time. Other seeds vary replicas,
requests and the order of the needs within bounds that leave room for one node to be down.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.cluster.harness.api import Object
from tests.cluster.harness.workloads import (
    SHOP,
    apart_from_its_like,
    budget,
    daemon_set,
    deployment,
    stateful_set,
    zone_spread,
)

ZONES = ("zone-a", "zone-b", "zone-c")
NODES = 12
NODE_MILLICPU = 8000
DAEMONS_MILLICPU = 200  # the requests of the two DaemonSets on each node
LEAST_LOAD, GREATEST_LOAD = 0.55, 0.70  # of the cpu; above that a node's pods may find no room elsewhere
SECONDS_BETWEEN_HOSTS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSize:
    """A controller's number of pods, and the requests of each."""

    replicas: int
    millicpu: int
    memory: str


# Name -> its value in the reference.
REFERENCE: Mapping[str, WorkloadSize] = {
    "web": WorkloadSize(replicas=24, millicpu=500, memory="512Mi"),
    "api": WorkloadSize(replicas=18, millicpu=750, memory="1Gi"),
    "cache": WorkloadSize(replicas=9, millicpu=1000, memory="2Gi"),
    "db": WorkloadSize(replicas=3, millicpu=2000, memory="4Gi"),
    "worker": WorkloadSize(replicas=24, millicpu=500, memory="512Mi"),
    "batch": WorkloadSize(replicas=15, millicpu=400, memory="256Mi"),
    "misc": WorkloadSize(replicas=6, millicpu=250, memory="128Mi"),
}
# The most replicas of these workloads, whose replicas never share a host: fewer than nodes, so that each finds a host
# even while one node is down.
_APART = {"cache": 10, "db": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFleet:
    """The cluster of one seed, and after how many seconds which host begins to need its reboot."""

    seed: int
    sizes: Mapping[str, WorkloadSize]
    asks: Mapping[str, float]
    places: tuple[tuple[str, str], ...]  # name and zone of each node

    @property
    def pods(self) -> int:
        """Without the pods of DaemonSets."""
        return sum(size.replicas for size in self.sizes.values())

    @property
    def load(self) -> float:
        """The share of the cpu that pods request."""
        return load(self.sizes, len(self.places))

    def daemons(self) -> list[Object]:
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}},
            daemon_set("log-shipper", cpu="100m"),
            daemon_set("node-exporter", cpu="100m"),
        ]

    def workloads(self) -> list[Object]:
        """The controllers and their budgets."""
        return [
            deployment("web", **self._pods("web"), **zone_spread("web")),
            budget("web", max_unavailable=2),
            deployment("api", **self._pods("api"), **zone_spread("api")),
            budget("api", min_available="80%"),
            deployment("cache", **self._pods("cache"), **apart_from_its_like("cache")),
            budget("cache", max_unavailable=1),
            stateful_set("db", **self._pods("db"), **apart_from_its_like("db")),
            budget("db", max_unavailable=1),
            deployment("worker", **self._pods("worker")),
            budget("worker", max_unavailable="25%"),
            deployment("batch", **self._pods("batch")),
            deployment("misc", **self._pods("misc")),
        ]

    def _pods(self, name: str) -> dict[str, Any]:
        size = self.sizes[name]
        return {"replicas": size.replicas, "cpu": f"{size.millicpu}m", "memory": size.memory}


def sample(seed: int, asking: int | None = None, *, times: int = 1, zones: int = len(ZONES)) -> SampleFleet:
    """The same for every agent. The seed also orders the hosts, of which the first `asking` need a reboot (None: all).
    `times` is the size of the fleet and of its workloads, in multiples of 12 nodes."""
    places = nodes(NODES * times, zones)
    names = [name for name, _ in places]
    if seed == 0:
        sizes = _larger(REFERENCE, times)
        return SampleFleet(seed=0, sizes=sizes, asks=dict.fromkeys(names[:asking], 0.0), places=places)
    chance = random.Random(f"roll-out {seed}")
    sizes = _drawn(chance)
    while not LEAST_LOAD <= load(sizes) <= GREATEST_LOAD:
        sizes = _drawn(chance)
    chance.shuffle(names)
    return SampleFleet(
        seed=seed,
        sizes=_larger(sizes, times),
        asks={name: place * SECONDS_BETWEEN_HOSTS for place, name in enumerate(names[:asking])},
        places=places,
    )


def nodes(count: int = NODES, zones: int = len(ZONES)) -> tuple[tuple[str, str], ...]:
    """Name and zone of each node."""
    return tuple((f"n{number:03}", ZONES[number % zones]) for number in range(count))


def load(sizes: Mapping[str, WorkloadSize], count: int = NODES) -> float:
    """The share of the cpu that these controllers and the DaemonSets request."""
    requested = sum(size.replicas * size.millicpu for size in sizes.values()) + count * DAEMONS_MILLICPU
    return requested / (count * NODE_MILLICPU)


def _larger(sizes: Mapping[str, WorkloadSize], times: int) -> Mapping[str, WorkloadSize]:
    return {name: replace(size, replicas=size.replicas * times) for name, size in sizes.items()}


def _drawn(chance: random.Random) -> dict[str, WorkloadSize]:
    """Replicas and cpu requests up to a third off the reference. Requests are multiples of 50m, as people write
    them."""
    return {
        name: WorkloadSize(
            replicas=min(_around(chance, size.replicas, 1), _APART.get(name, size.replicas * 2)),
            millicpu=_around(chance, size.millicpu, 50),
            memory=size.memory,
        )
        for name, size in REFERENCE.items()
    }


def _around(chance: random.Random, value: int, step: int) -> int:
    return max(step, round(value * chance.uniform(2 / 3, 4 / 3) / step) * step)
