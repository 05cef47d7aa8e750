"""A number of new nodes below which some pod certainly gets no node, by arithmetic on requests: it saves the search the
numbers that are too small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import incoming_requests
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler_core.snapshot.pods.tallies import UsageTally
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

_RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NO_ROOM: Final[tuple[int, ...]] = (0,) * (len(_RESOURCES) + 1)


class RoomNeeded(Value, kw_only=True):
    """`wanted`: what is missing beside the nodes of the cluster: places for the smallest of the pods, then an amount of
    each resource. `offered`: what one new node of each kind has of it."""

    wanted: tuple[int, ...]
    offered: tuple[tuple[int, ...], ...]

    def is_too_little(self, counts: tuple[int, ...]) -> bool:
        """Whether so many nodes of each kind certainly leave a pod without a node."""
        return any(
            sum(count * room[each] for count, room in zip(counts, self.offered, strict=True)) < wanted
            for each, wanted in enumerate(self.wanted)
        )

    def least_price(self, prices: Sequence[float]) -> float:
        """No nodes of these prices are enough for less."""
        found = [0.0]
        for each, wanted in enumerate(self.wanted):
            offers = [price / room[each] for price, room in zip(prices, self.offered, strict=True) if room[each]]
            found += [wanted * min(offers)] if wanted and offers else []
        return max(found)


def room_needed(scheduler: Scheduler, world: Snapshot, new_names: tuple[str, ...], pods: tuple[Pod, ...]) -> RoomNeeded:
    """`world` has the nodes `new_names`, one of each kind, with their DaemonSet pods. Nothing is wanted if the rule of
    arithmetic does not hold for these pods."""
    nothing = RoomNeeded(wanted=_NO_ROOM, offered=(_NO_ROOM,) * len(new_names))
    if not pods or not _adds_up(scheduler, world, pods):
        return nothing
    requests = [incoming_requests(pod.spec, scheduler.rules) for pod in pods]
    amounts = [[each.amount(name) for name in _RESOURCES] for each in requests]
    columns, usage = world.columns, world.tally(UsageTally(scheduler.rules)).usage
    free = np.zeros((len(_RESOURCES), len(columns)), dtype=np.int64)
    for line, name in enumerate(_RESOURCES):
        row = columns.resources[name]
        free[line] = np.maximum(columns.allocatable[row] - usage.requested[row], 0)
    places = np.maximum(columns.allowed_pods - usage.pods, 0)
    for line, least in enumerate(map(min, zip(*amounts, strict=True))):
        if least:
            places = np.minimum(places, free[line] // least)
    room = np.vstack((np.minimum(places, len(pods)), np.where(places > 0, free, 0)))
    new = [world.row(name) for name in new_names]
    old = np.ones(len(columns), dtype=bool)
    old[new] = False
    # Python's integers: the sum of many large amounts may not fit 64 bits.
    there = [sum(line.tolist()) for line in room[:, old]]
    needed = [len(pods), *(sum(each) for each in zip(*amounts, strict=True))]
    return RoomNeeded(
        wanted=tuple(max(0, need - have) for need, have in zip(needed, there, strict=True)),
        offered=tuple(tuple(room[:, row].tolist()) for row in new),
    )


def _adds_up(scheduler: Scheduler, world: Snapshot, pods: tuple[Pod, ...]) -> bool:
    """Whether each placed pod takes its request from the free room of one node."""
    if len({pod.key for pod in pods}) < len(pods):
        return False
    return all(
        pod.resize is None and world.placements.find(pod.key) is None and _checks_resources(scheduler, pod)
        for pod in pods
    )


def _checks_resources(scheduler: Scheduler, pod: Pod) -> bool:
    try:
        return "NodeResourcesFit" in scheduler.runner(pod).plugins.by_point.get("filter", ())
    except NoProfileError:
        return False
