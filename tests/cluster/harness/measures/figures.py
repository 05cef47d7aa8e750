"""Computes the figures of a roll-out from the records of the observer and the hosts. The functions are pure: they read
no cluster and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tests.cluster.harness.machines.hosts import Reboot
from tests.cluster.harness.observer import LockSeen, NodeSeen, PodLife, Seen

SOFT = "PreferNoSchedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The minimum, median, maximum and number of several measurements."""

    least: float
    median: float
    greatest: float
    count: int

    def __str__(self) -> str:
        return f"{self.least:.1f} / {self.median:.1f} / {self.greatest:.1f}"


def spread(values: Iterable[float]) -> Spread | None:
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(least=ordered[0], median=median(ordered), greatest=ordered[-1], count=len(ordered))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """How often pods moved. Does not count pods of DaemonSets and pods without a controller."""

    total: int  # pods made after the start
    repeat: int  # deletions of a pod that was itself such a replacement
    floor: int  # pods at the start + pods of the emptiest node, because the pods of the first drain must move twice
    pending_seconds: float  # from creation to ready, summed over the pods made after the start
    unscheduled_seconds: float  # the part of it before the scheduler found a node


def moves(pods: Iterable[PodLife], start: float, end: float) -> Moves:
    """Count the moves of `pods`. The observer's history must begin before `start`."""
    owned = [life for life in pods if life.owner and not life.from_daemonset and life.created_at <= end]
    before = [life for life in owned if life.created_at <= start and (life.gone_at or end + 1) > start]
    made = [life for life in owned if life.created_at > start]
    per_node: dict[str, int] = {}
    for life in before:
        per_node[life.node] = per_node.get(life.node, 0) + 1
    return Moves(
        total=len(made),
        repeat=sum(life.deleting_at is not None and life.deleting_at <= end for life in made),
        floor=len(before) + min(per_node.values(), default=0),
        pending_seconds=sum(_until(life.ready_at, life, end) for life in made),
        unscheduled_seconds=sum(_until(life.scheduled_at, life, end) for life in made),
    )


def _until(reached: float | None, life: PodLife, end: float) -> float:
    return min(reached or life.gone_at or end, end) - life.created_at


def down_spans(history: Sequence[NodeSeen], end: float) -> list[Span]:
    """Return the spans of time in which the node was cordoned or not ready."""
    spans = []
    since: float | None = None
    for seen in history:
        if seen.down and since is None:
            since = seen.at
        elif not seen.down and since is not None:
            spans.append(Span(start=since, end=seen.at))
            since = None
    if since is not None:
        spans.append(Span(start=since, end=end))
    return spans


def most_at_once(spans: Iterable[Span]) -> int:
    """Return how many spans overlap at most. Two spans do not overlap if one span ends when the other span starts."""
    edges = sorted(
        (edge for span in spans for edge in ((span.start, 1), (span.end, -1))), key=lambda edge: (edge[0], edge[1])
    )
    now = greatest = 0
    for _, step in edges:
        now += step
        greatest = max(greatest, now)
    return greatest


def seconds_held(locks: Sequence[LockSeen], start: float, end: float) -> float:
    """Return for how many seconds between `start` and `end` the lock had at least one holder."""
    held = 0.0
    for seen, after in pairwise([*locks, LockSeen(at=end, uid="", text=None)]):
        if seen.holders:
            held += max(0.0, min(after.at, end) - max(seen.at, start))
    return held


def holding_spans(locks: Sequence[LockSeen], node: str, end: float) -> list[Span]:
    spans = []
    since: float | None = None
    for seen in locks:
        if node in seen.holders and since is None:
            since = seen.at
        elif node not in seen.holders and since is not None:
            spans.append(Span(start=since, end=seen.at))
            since = None
    if since is not None:
        spans.append(Span(start=since, end=end))
    return spans


def soft_tainted_at(history: Sequence[NodeSeen], start: float) -> float | None:
    """Return the time at which the node first had a PreferNoSchedule taint after `start`, or None if it had none."""
    return next(
        (seen.at for seen in history if seen.at >= start and any(effect == SOFT for _, effect in seen.taints)), None
    )


def cordoned_at(history: Sequence[NodeSeen], start: float) -> float | None:
    return next((seen.at for seen in history if seen.at >= start and seen.unschedulable), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The figures of one roll-out. Times are in seconds. `drain`, `boot`, `ready_but_cordoned` and `settling` are sums
    over all nodes.
    """

    wall: float
    idle_lock: float  # no node holds the lock
    drain: float  # from the claim in the lock to the request to reboot
    boot: float  # from that request to a Ready node
    ready_but_cordoned: float
    settling: float  # schedulable again, claim still held
    node_seconds_down: float
    most_down: int
    moves: Moves
    sentinel_to_taint: Spread | None
    lead: Spread | None  # from the soft taint to the cordon
    tainted: int  # nodes that carried the soft taint before their cordon
    next_start: Spread | None  # from a release to the next claim


def rollout(
    seen: Seen,
    reboots: Mapping[str, Sequence[Reboot]],
    start: float,
    end: float,
    *,
    asked: Mapping[str, float] | None = None,
) -> Rollout:
    """Compute the figures of a roll-out. `asked` maps each host to the time at which it began to need a reboot. Without
    `asked`, all hosts need a reboot from `start` on.
    """
    asked = asked or dict.fromkeys(reboots, start)
    histories = {name: [one for one in seen.nodes if one.name == name] for name in reboots}
    downs = [span for history in histories.values() for span in down_spans(history, end)]
    drain = boot = waiting = settling = 0.0
    for name, history in histories.items():
        for reboot in reboots[name]:
            held = next(
                (span for span in holding_spans(seen.locks, name, end) if span.start <= reboot.asked_at <= span.end),
                None,
            )
            ready_at = reboot.ready_at or end
            given_back = next((one.at for one in history if one.at >= ready_at and not one.unschedulable), end)
            drain += reboot.asked_at - held.start if held else 0.0
            boot += ready_at - reboot.asked_at
            waiting += given_back - ready_at
            settling += max(0.0, held.end - given_back) if held else 0.0
    taints = {name: soft_tainted_at(history, start) for name, history in histories.items()}
    cordons = {name: cordoned_at(history, start) for name, history in histories.items()}
    leads = [
        cordons[name] - at
        for name, at in taints.items()
        if at is not None and cordons[name] is not None and cordons[name] > at
    ]  # type: ignore[operator]
    return Rollout(
        wall=end - start,
        idle_lock=(end - start) - seconds_held(seen.locks, start, end),
        drain=drain,
        boot=boot,
        ready_but_cordoned=waiting,
        settling=settling,
        node_seconds_down=sum(span.seconds for span in downs),
        most_down=most_at_once(downs),
        moves=moves(seen.pods.values(), start, end),
        sentinel_to_taint=spread(at - asked[name] for name, at in taints.items() if at is not None),
        lead=spread(leads),
        tainted=len(leads),
        next_start=spread(_gaps(seen.locks, start)),
    )


def _gaps(locks: Sequence[LockSeen], start: float) -> list[float]:
    """Return the seconds from each release of the last claim in the lock to the next claim."""
    gaps = []
    released: float | None = None
    for before, after in pairwise(one for one in locks if one.at >= start):
        if before.holders and not after.holders:
            released = after.at
        elif not before.holders and after.holders and released is not None:
            gaps.append(after.at - released)
    return gaps
