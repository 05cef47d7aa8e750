"""Simulates a whole roll-out on a frozen cluster: each node is drained, goes down and comes back, and each drain starts
with the cluster that the earlier ones left.

`Rules` decide when a node may take a claim and when it may reboot, as the gates do for the agents. Every node that must
reboot has the soft taint from the beginning, is cordoned when its drain begins, and comes back without the taint.
Displaced pods run on the node that the scheduler chose; those without room are tried again whenever a node comes back.

The parts are in `rollout_parts/`: agenda (clock), cluster, permission to take a claim, pods without a node, account of
events.

Not simulated: changes by other people, new nodes, slow starts of pods (a budget allows another eviction as soon as the
replacement has a node), and preemption by pods that have waited for long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, partial

import msgspec

from scheduler_core.arguments import checked, expect_fields
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.evicted.replacements import StaysBecause, moves_all
from scheduler_core.simulation.forecast import Outcome, PodForecast
from scheduler_core.simulation.movable import MovableTally
from scheduler_core.simulation.rollout_parts.account import Account
from scheduler_core.simulation.rollout_parts.agenda import Agenda
from scheduler_core.simulation.rollout_parts.cluster import SimulatedCluster, tainted
from scheduler_core.simulation.rollout_parts.permission import Permission
from scheduler_core.simulation.rollout_parts.rules import NodesAtOnce, Rules
from scheduler_core.simulation.rollout_parts.unplaced import Unplaced, tried_again
from scheduler_core.simulation.scenario_parts.displaced import Displaced
from scheduler_core.simulation.searches import Draw, Likely, drawn_search
from scheduler_core.simulation.timeline import Left, Move, Obstacle, Span, Step, Timeline, Visit
from scheduler_core.snapshot.snapshot import Snapshot, UnknownNodeError
from scheduler_core.values import Value

# A refusal by a forecast costs a simulated drain. While other nodes drain or reboot, the rules are checked again when
# one of them ends, so only so many refused nodes are tried at one time.
_MOST_TRIED_IN_VAIN = 5


class Durations(Value, kw_only=True):
    """Seconds of each step of a reboot. `boot` runs from the end of the drain until the node is back in service;
    `boot_of` has measured times by node."""

    held_back: float = 0.0
    drain: float = 60.0
    boot: float = 180.0
    settle: float = 30.0
    handover: float = 5.0  # from the release of a claim to the next claim
    boot_of: Mapping[str, float] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        expect_fields(self)
        for name in ("held_back", "drain", "boot", "settle", "handover"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}: expected a number of seconds, 0 or more")


@checked
def simulate_rollout(
    snapshot: Snapshot,
    nodes: Sequence[str],
    scheduler: Scheduler,
    rules: Rules | None = None,
    *,
    begins: datetime,
    durations: Durations | None = None,
    taint_key: str | None = None,
    most_days: float = 30.0,
    on_progress: Callable[[int], None] = lambda _: None,
    stays: StaysBecause = moves_all,
    seed: int = 0,
    possible: tuple[Likely, ...] | None = None,
) -> Timeline:
    """Simulates the roll-out over these nodes, until no more node can begin its drain or `most_days` have passed.

    Without `rules`, one node drains at a time (`NodesAtOnce`). With `taint_key`, waiting nodes have a soft taint with
    this key. `stays` says which pods the drains leave. `on_progress` is called repeatedly with the number of rebooted
    nodes. `seed` decides which of equal nodes a pod takes, which pod ends first, and where the search starts; with 0
    the scheduler checks every node and its own rule chooses. Of `possible` (`SearchEstimate.searches`), the seed
    chooses one search. Raises UnknownNodeError if a node is missing from the snapshot.
    """
    if begins.tzinfo is None:
        raise ValueError(f"begins is {begins}, without a time zone: pass datetime(…, tzinfo=UTC)")
    if rules is not None and not hasattr(rules, "line"):
        raise TypeError(
            f"rules is a {type(rules).__name__}: pass NodesAtOnce(…), or an object with the methods of Rules"
        )
    if not 0 < most_days < math.inf:
        raise ValueError(f"most_days is {most_days}: expected a number of days, more than 0")
    for name in nodes:
        if name not in snapshot.columns.row_of:
            raise UnknownNodeError(f"the snapshot has no node {name!r}")
    rules = rules or NodesAtOnce()
    draw, names = Draw(seed), tuple(dict.fromkeys(nodes))
    searches = drawn_search(snapshot, scheduler, draw, possible)
    world, returning = tainted(snapshot, names, taint_key)
    cluster = SimulatedCluster(world, returning, scheduler, stays, draw, searches)
    rollout = _Rollout(
        nodes=names,
        rules=rules,
        durations=durations or Durations(),
        agenda=Agenda(begins),
        cluster=cluster,
        permission=Permission(rules, lambda name: cluster.drained(name).forecasts[0], cluster.bars),
        movable=MovableTally(stays),
        waiting=dict.fromkeys(names),
    )
    return rollout.run(begins + timedelta(days=most_days), on_progress)


@dataclass(slots=True)
class _Work:
    spans: list[Span] = field(default_factory=list)
    moves: int = 0


@dataclass(slots=True)
class _Rollout:
    """Which nodes wait, which hold a claim, and what has happened."""

    nodes: tuple[str, ...]
    rules: Rules
    durations: Durations
    agenda: Agenda
    cluster: SimulatedCluster
    permission: Permission
    movable: MovableTally
    waiting: dict[str, None]  # the nodes that wait for a claim, in order
    work: dict[str, _Work] = field(default_factory=dict)
    unplaced: list[Unplaced] = field(default_factory=list)
    account: Account = field(default_factory=Account)

    def run(self, ends_by: datetime, on_progress: Callable[[int], None]) -> Timeline:
        begins = self.now
        while True:
            in_the_way = self._begin_those_who_may()
            at = self._next_instant()
            if at is None or at > ends_by:
                return self._timeline(begins, ends_by)
            on_progress(self.account.reboots)
            self.account.hindered(in_the_way, (at - self.now).total_seconds())
            self.agenda.advance(at)

    @property
    def now(self) -> datetime:
        return self.agenda.now

    def _next_instant(self) -> datetime | None:
        opening = self.rules.next_opening(self.now) if self.waiting else None
        return min((at for at in (self.agenda.next, opening) if at is not None), default=None)

    # ---- nodes that start ----

    def _begin_those_who_may(self) -> list[tuple[str, Obstacle]]:
        """Gives claims to waiting nodes until the concurrency is used up or no other node may take one. If some
        concurrency remains, the nodes that may not, each with the reason."""
        asked: set[str] = set()
        in_the_way: list[tuple[str, Obstacle]] = []
        tried_in_vain = 0
        while True:
            line = self._line({name: None for name in self.waiting if name not in asked} if asked else self.waiting)
            if not line:
                # If the concurrency is used up, the line of all waiting nodes is empty too: the obstacles delayed no
                # node.
                return in_the_way if self._line(self.waiting) else []
            for name in line:
                asked.add(name)
                is_kept = self.permission.is_kept(name)
                obstacle = self.permission.refusal(name, self.now)
                if obstacle is None:
                    self._claim(name)
                    asked.remove(name)  # the node no longer waits
                    break  # the rules may now choose another order
                in_the_way.append((name, obstacle))
                tried_in_vain += self.permission.was_refused(name) and not is_kept
                if tried_in_vain >= _MOST_TRIED_IN_VAIN and self.work:
                    return in_the_way

    def _line(self, candidates: Mapping[str, None]) -> Sequence[str]:
        return self.rules.line(candidates.keys(), self.now, _counted_when_asked(self.cluster.world, self.movable))

    # ---- the way of a node ----

    def _claim(self, name: str) -> None:
        del self.waiting[name]
        self.rules.claimed(name, self.now)
        self.work[name] = _Work()
        if self.durations.held_back:
            self._spend(name, Step.HELD_BACK, self.durations.held_back, self._ask_again)
        else:
            self._drain(name)

    def _ask_again(self, name: str) -> None:
        """After the pause between claim and drain, checks the rules once more: drains the node, or releases its
        claim."""
        obstacle = self.permission.refusal(name, self.now)
        if obstacle is None:
            self._drain(name)
        else:
            self._release(name, undone=obstacle.sentence)

    def _drain(self, name: str) -> None:
        self._displace(name)
        self._spend(name, Step.DRAINING, self.durations.drain, self._reboot)

    def _reboot(self, name: str) -> None:
        obstacle = self.rules.late_refusal(name, self.now)
        if obstacle is None:
            self._spend(name, Step.REBOOTING, self.durations.boot_of.get(name, self.durations.boot), self._come_back)
            return
        self.account.hindered([(name, obstacle)])
        self.cluster.undo_drain(name)
        self._place_again()
        self._release(name, undone=obstacle.sentence)

    def _come_back(self, name: str) -> None:
        self.cluster.bring_back(name)
        self.permission.node_returned()
        self._place_again()
        self._spend(name, Step.SETTLING, self.durations.settle, self._release)

    def _release(self, name: str, undone: str = "") -> None:
        work = self.work.pop(name)
        self.account.add_visit(Visit(node=name, spans=tuple(work.spans), moves=work.moves, undone=undone))
        self.agenda.after(self.durations.handover, lambda: self.rules.released(name, self.now))
        if undone:
            self.waiting[name] = None

    def _spend(self, name: str, step: Step, seconds: float, then: Callable[[str], None]) -> None:
        self.work[name].spans.append(Span(step=step, start=self.now, end=self.now + timedelta(seconds=seconds)))
        self.agenda.after(seconds, partial(then, name))

    # ---- the pods ----

    def _displace(self, name: str) -> None:
        """Drains the node. Pods with another node run there from now on; the other displaced pods wait."""
        drain = self.cluster.drained(name)
        self.cluster.take_over(drain)
        (forecast,) = drain.forecasts
        by_title = {pod.title: pod for pod in forecast.pods}
        for each in drain.displaced:
            if each.unknown:
                self.account.unknown.append(each.pod.key)
            elif each.landed:
                self.account.moves.append(_move(each, self.now, is_preempted=each.pod.key not in by_title))
                self.work[name].moves += each.pod.key in by_title
            else:
                self.unplaced.append(_unplaced(each, by_title.get(each.pod.key), self.now))
        self.account.slow.extend(pod.title for pod in forecast.slow)
        self.account.lost.extend(pod.title for pod in forecast.pods if pod.outcome is Outcome.LOST)

    def _place_again(self) -> None:
        left = []
        for each, node in tried_again(self.unplaced, self.cluster, self.now):
            if node is None:
                left.append(each)
                continue
            self.account.waits.append(each.wait(self.now))
            if node != each.pod.node_name:
                self.account.moves.append(Move(pod=each.pod.key, source=each.pod.node_name, target=node, at=self.now))
        self.unplaced = left

    # ---- the end ----

    def _timeline(self, begins: datetime, ends_by: datetime) -> Timeline:
        account, rebooted = self.account, self.account.rebooted
        ends = max((visit.end for visit in account.visits), default=begins)
        return Timeline(
            begins=begins,
            ends=ends,
            nodes=self.nodes,
            visits=tuple(sorted(account.visits, key=lambda visit: (visit.start, visit.node))),
            moves=tuple(account.moves),
            waits=(*account.waits, *(each.wait(None) for each in self.unplaced)),
            lost=tuple(account.lost),
            unknown=tuple(account.unknown),
            slow=tuple(dict.fromkeys(account.slow)),
            closings=account.closings(self.rules, self.nodes, begins, ends),
            hindrances=account.hindrances,
            left=tuple(
                Left(node=name, obstacle=self._why_left(name, ends_by)) for name in self.nodes if name not in rebooted
            ),
            is_open=self.cluster.is_open,
        )

    def _why_left(self, name: str, ends_by: datetime) -> Obstacle:
        if name in self.work:
            return _time_ended("the simulated time ended before the node had rebooted and returned")
        found = self.permission.refusal_at_the_end(name, self.now)
        return found or _time_ended(
            f"the node could not begin its reboot within the simulated time, which ends at {ends_by:%Y-%m-%d %H:%M}"
        )


def _counted_when_asked(world: Snapshot, movable: MovableTally) -> Callable[[str], int]:
    """How many pods a drain of a node would evict, counted at the first call: most rules that order the waiting
    nodes never ask."""

    row_of, counts = world.columns.row_of, cache(lambda: world.tally(movable))
    return lambda name: int(counts()[row_of[name]])


def _time_ended(sentence: str) -> Obstacle:
    return Obstacle(rule="time", subject="the simulation ended", sentence=sentence)


def _move(each: Displaced, at: datetime, *, is_preempted: bool) -> Move:
    return Move(
        pod=each.pod.key,
        source=each.pod.node_name,
        target=each.replacement.node_name,
        at=at,
        choices=max(1, len(each.result.best_rows) if each.result else 1),
        is_preempted=is_preempted,
        is_open=each.result is not None and each.result.sample is not None,
    )


def _unplaced(each: Displaced, forecast: PodForecast | None, since: datetime) -> Unplaced:
    returns = forecast is not None and forecast.outcome is Outcome.RETURNS
    why = forecast.sentence if forecast else f"preempted from {each.pod.node_name}"
    return Unplaced(each.pod, each.replacement, since, returns, why)
