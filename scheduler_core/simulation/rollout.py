"""A whole roll-out on a frozen cluster: node after node is drained, down, and back, and each drain meets what
the ones before left.

Who may go when is not decided here: `Rules` is asked, as the agents ask their gates. Every node still to go
carries the soft taint from the beginning; a node under its claim is cordoned and comes back without the taint;
displaced pods stand where the scheduler put them and run from then on. Pods without room are tried again
whenever a node comes back.

What is not simulated: other people's changes, new nodes, pods that take long to start (a budget is refilled as
soon as the replacement has a node), and preemption by pods that have waited for long."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.taints import PREFER_NO_SCHEDULE, Taint
from scheduler_core.simulation.courses import Displaced
from scheduler_core.simulation.drain import FinishedDrain, run_drain
from scheduler_core.simulation.evicted.evictions import BudgetLedger
from scheduler_core.simulation.evicted.replacements import StaysBecause, moves_all
from scheduler_core.simulation.forecast import Forecast, Outcome
from scheduler_core.simulation.movable import MovableTally
from scheduler_core.simulation.searches import Draw, Likely, drawn_search
from scheduler_core.simulation.timeline import (
    Closing,
    Hindrance,
    Left,
    Move,
    Obstacle,
    Span,
    Step,
    Timeline,
    Visit,
    Wait,
)
from scheduler_core.snapshot.snapshot import Snapshot, UnknownNodeError
from scheduler_core.values import Value, replace_value

# A refused node costs a whole drain. While others are at work their end will ask again anyway, so few are tried
# in vain at one instant.
_MOST_TRIED_IN_VAIN = 5
_MOST_CLOSINGS = 400


class Durations(Value, kw_only=True):
    """Seconds. `boot` is from the drained node to the node given back; `boot_of` has what was measured for
    single nodes."""

    held_back: float = 0.0
    drain: float = 60.0
    boot: float = 180.0
    settle: float = 30.0
    handover: float = 5.0  # from a claim given back to the next one taken
    boot_of: Mapping[str, float] = msgspec.field(default_factory=dict)


class Rules(Protocol):
    """Who may go, as far as it is not the scheduler's business. Instants are aware; calls come in the order of
    the simulated time."""

    def line(self, waiting: Sequence[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """The waiting nodes that may be asked now, the next one first; none when no place is free. `movable`:
        pods that would have to move."""

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        """Why the node may not take a claim now; without a forecast only what can be told without one."""

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        """Why the drained node may not reboot now, so that its drain is undone."""

    def claimed(self, node: str, at: datetime) -> None:
        """The node holds a claim from now on."""

    def released(self, node: str, at: datetime) -> None:
        """The node's claim was given back."""

    def next_opening(self, at: datetime) -> datetime | None:
        """The first instant after `at` at which the clock alone may turn a refusal into a yes; None when it
        never does."""

    def next_closing(self, at: datetime) -> datetime | None:
        """The last second of the window that is open at `at`, or of the next one; None when it never ends or
        never opens."""


def simulate_rollout(
    snapshot: Snapshot,
    nodes: Sequence[str],
    scheduler: Scheduler,
    rules: Rules,
    *,
    begins: datetime,
    durations: Durations,
    taint_key: str | None,
    most_days: float = 30.0,
    on_progress: Callable[[int], None] = lambda _: None,
    stays: StaysBecause = moves_all,
    seed: int = 0,
    possible: tuple[Likely, ...] | None = None,
) -> Timeline:
    """The roll-out over these nodes, from `begins` until nobody can go any more, or `most_days` have passed.

    `taint_key` None: no soft taint. `stays` is the drains' own rule of what they leave alone. `on_progress`
    gets the number of nodes that have rebooted, again and again. `seed` draws what is left to chance (which of
    equal nodes a pod takes, which pod ends first, where the scheduler begins to look); 0 takes the scheduler's own
    pick at each tie and lets it look at every node. `possible` are the searches of which one is drawn, for
    who learned them (`SearchBelief.searches`). Raises UnknownNodeError for a node that the
    snapshot does not have."""
    for name in nodes:
        if name not in snapshot.columns.row_of:
            raise UnknownNodeError(f"the snapshot has no node {name!r}")
    rollout = _Rollout(
        world=snapshot,
        scheduler=scheduler,
        rules=rules,
        begins=begins,
        now=begins,
        durations=durations,
        taint_key=taint_key,
        ends_by=begins + timedelta(days=most_days),
        on_progress=on_progress,
        stays=stays,
        movable=MovableTally(stays),
        waiting=list(dict.fromkeys(nodes)),
        draw=Draw(seed),
        possible=possible,
    )
    return rollout.run()


@dataclass(slots=True)
class _Waiting:
    """A displaced pod without a node: as it was when it was evicted, and the replacement that looks for a place."""

    pod: Pod
    replacement: Pod
    since: datetime
    returns: bool
    why: str


@dataclass(slots=True)
class _Work:
    """A node under its claim."""

    spans: list[Span]
    moves: int = 0
    undone: str = ""


@dataclass(slots=True)
class _Rollout:
    world: Snapshot
    scheduler: Scheduler
    rules: Rules
    begins: datetime
    now: datetime
    ends_by: datetime
    durations: Durations
    taint_key: str | None
    on_progress: Callable[[int], None]
    stays: StaysBecause
    movable: MovableTally
    waiting: list[str]
    draw: Draw
    possible: tuple[Likely, ...] | None = None
    searches: tuple[Likely, ...] = field(init=False, default=())
    is_open: bool = field(init=False, default=False)
    nodes: tuple[str, ...] = field(init=False)
    as_it_was: dict[str, Node] = field(init=False, default_factory=dict)
    agenda: list[tuple[datetime, int, str, Callable[[str], None]]] = field(init=False, default_factory=list)
    entries: int = field(init=False, default=0)
    work: dict[str, _Work] = field(init=False, default_factory=dict)
    homeless: list[_Waiting] = field(init=False, default_factory=list)
    visits: list[Visit] = field(init=False, default_factory=list)
    moves: list[Move] = field(init=False, default_factory=list)
    waits: list[Wait] = field(init=False, default_factory=list)
    lost: list[str] = field(init=False, default_factory=list)
    unknown: list[str] = field(init=False, default_factory=list)
    met: dict[tuple[str, str], tuple[float, set[str]]] = field(init=False, default_factory=dict)
    given_back: int = field(init=False, default=0)
    done: int = field(init=False, default=0)
    refused: dict[str, tuple[int, Obstacle]] = field(
        init=False, default_factory=dict
    )  # by a forecast, after so many give-backs
    drained: dict[str, tuple[Snapshot, FinishedDrain]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = tuple(self.waiting)
        self.searches = drawn_search(self.world, self.scheduler, self.draw, self.possible)
        self.as_it_was = {name: self.world.node(name) for name in self.nodes}
        if self.taint_key is not None:
            taint = Taint(self.taint_key, "", PREFER_NO_SCHEDULE)
            untainted = [node for node in self.as_it_was.values() if taint not in node.taints]
            self.world = self.world.with_nodes_replaced(
                replace(node, taints=(*node.taints, taint)) for node in untainted
            )
            for name, node in self.as_it_was.items():
                self.as_it_was[name] = replace(node, taints=tuple(each for each in node.taints if each != taint))

    # ---- the clock ----

    def run(self) -> Timeline:
        while True:
            in_the_way = self._begin_those_who_may()
            at = self._next_instant(is_blocked=bool(self.waiting))
            if at is None or at > self.ends_by:
                return self._timeline()
            self.on_progress(self.done)
            self._book(in_the_way, (at - self.now).total_seconds())
            self.now = at
            while self.agenda and self.agenda[0][0] <= at:
                _, _, name, what = heapq.heappop(self.agenda)
                what(name)

    def _next_instant(self, *, is_blocked: bool) -> datetime | None:
        instants = [self.agenda[0][0]] if self.agenda else []
        opening = self.rules.next_opening(self.now) if is_blocked else None
        return min([*instants, opening] if opening else instants, default=None)

    def _later(self, name: str, seconds: float, what: Callable[[str], None]) -> None:
        self.entries += 1
        heapq.heappush(self.agenda, (self.now + timedelta(seconds=seconds), self.entries, name, what))

    # ---- who goes ----

    def _begin_those_who_may(self) -> list[tuple[str, Obstacle]]:
        """Lets nodes begin until no place is free or nobody may; gives what stood in the way where a place was
        left unused."""
        asked: set[str] = set()
        in_the_way: list[tuple[str, Obstacle]] = []
        tried_in_vain = 0
        while True:
            candidates = [name for name in self.waiting if name not in asked] if asked else self.waiting
            line = self._line(candidates)
            if not line:
                return in_the_way if self._line(self.waiting) else []  # no place was left unused
            for name in line:
                asked.add(name)
                is_remembered = self.refused.get(name, (-1,))[0] == self.given_back
                obstacle = self._ask(name)
                if obstacle is None:
                    self._claim(name)
                    break  # the line may be another one now
                in_the_way.append((name, obstacle))
                tried_in_vain += name in self.refused and not is_remembered
                if tried_in_vain >= _MOST_TRIED_IN_VAIN and self.work:
                    return in_the_way

    def _ask(self, name: str) -> Obstacle | None:
        obstacle = self.rules.refusal(name, self.now, None)
        if obstacle is not None:
            return obstacle
        since, known = self.refused.get(name, (-1, None))
        if since == self.given_back:
            return known
        obstacle = self.rules.refusal(name, self.now, self._drain(name).forecasts[0])
        if obstacle is None:
            self.refused.pop(name, None)
        else:
            self.refused[name] = (self.given_back, obstacle)
        return obstacle

    def _line(self, candidates: Sequence[str]) -> Sequence[str]:
        row_of, movable = self.world.columns.row_of, self.world.tally(self.movable)
        return self.rules.line(candidates, self.now, lambda name: int(movable[row_of[name]]))

    def _drain(self, name: str) -> FinishedDrain:
        known = self.drained.get(name)
        if known is None or known[0] is not self.world:
            self.drained.clear()
            self.drained[name] = known = (
                self.world,
                run_drain(
                    self.world,
                    [name],
                    self.scheduler,
                    with_details=False,
                    stays=self.stays,
                    searches=self.searches,
                    draw=self.draw,
                ),
            )
            self.is_open = self.is_open or known[1].is_open
        return known[1]

    # ---- a node's way ----

    def _claim(self, name: str) -> None:
        self.waiting.remove(name)
        self.rules.claimed(name, self.now)
        self.work[name] = _Work([])
        if self.durations.held_back:
            self._span(name, Step.HELD_BACK, self.durations.held_back, self._cordon)
        else:
            self._cordon(name)

    def _cordon(self, name: str) -> None:
        if self.work[name].spans:  # time has passed since the claim: everything is asked once more
            obstacle = self._ask(name)
            if obstacle is not None:
                self.work[name].undone = obstacle.sentence
                self._release(name)
                return
        self._go_on_from(name, self._drain(name))
        self._span(name, Step.DRAINING, self.durations.drain, self._reboot)

    def _reboot(self, name: str) -> None:
        obstacle = self.rules.late_refusal(name, self.now)
        if obstacle is None:
            self._span(name, Step.REBOOTING, self.durations.boot_of.get(name, self.durations.boot), self._give_back)
            return
        self.work[name].undone = obstacle.sentence
        self._note([(name, obstacle)])
        node = self.world.node(name)
        self.world = self.world.with_node_replaced(node if self.as_it_was[name].unschedulable else node.uncordoned())
        self._place_homeless()
        self._release(name)

    def _give_back(self, name: str) -> None:
        self.world = self.world.with_node_replaced(self.as_it_was[name])
        self.given_back += 1
        self._place_homeless()
        self._span(name, Step.SETTLING, self.durations.settle, self._release)

    def _release(self, name: str) -> None:
        work = self.work.pop(name)
        spans = tuple(work.spans)
        self.visits.append(Visit(node=name, spans=spans, moves=work.moves, undone=work.undone))
        self._later(name, self.durations.handover, self._free)
        if work.undone:
            self.waiting.append(name)
        else:
            self.done += 1

    def _free(self, name: str) -> None:
        self.rules.released(name, self.now)

    def _span(self, name: str, step: Step, seconds: float, then: Callable[[str], None]) -> None:
        self.work[name].spans.append(Span(step=step, start=self.now, end=self.now + timedelta(seconds=seconds)))
        self._later(name, seconds, then)

    # ---- the pods ----

    def _go_on_from(self, name: str, drain: FinishedDrain) -> None:
        """The cluster after the drain: who landed runs there, under the name it had at the beginning; who did
        not waits."""
        self.world = drain.world.with_pods_exchanged(
            (each.replacement.key, _as_running(each.pod, each.replacement)) for each in drain.displaced if each.landed
        )
        self.searches = drain.searches
        (forecast,) = drain.forecasts
        outcomes = {pod.title: pod for pod in forecast.pods}
        for each in drain.displaced:
            told = outcomes.get(each.pod.key)
            if each.unknown:
                self.unknown.append(each.pod.key)
            elif each.landed:
                self._moved(
                    each, choices=max(1, len(each.result.best) if each.result else 1), is_preempted=told is None
                )
                self.work[name].moves += told is not None
            else:
                returns = told is not None and told.outcome is Outcome.RETURNS
                why = told.sentence if told else f"preempted from {each.pod.node_name}"
                self.homeless.append(_Waiting(each.pod, each.replacement, self.now, returns, why))
        self.lost.extend(pod.title for pod in forecast.pods if pod.outcome is Outcome.LOST)

    def _moved(self, each: Displaced, *, choices: int, is_preempted: bool) -> None:
        self.moves.append(
            Move(
                pod=each.pod.key,
                source=each.pod.node_name,
                target=each.replacement.node_name,
                at=self.now,
                choices=choices,
                is_preempted=is_preempted,
                is_open=each.result is not None and each.result.sample is not None,
            )
        )

    def _place_homeless(self) -> None:
        """Another try for each pod that waits; of replicas that are alike only the first is tried once one of
        them did not fit."""
        full: set[Hashable] = set()
        left: list[_Waiting] = []
        for each in sorted(self.homeless, key=lambda each: (-each.pod.priority, each.since, each.pod.key)):
            kind = _kind(each.pod)
            node = None if kind in full else self._place_of(each.replacement)
            if node is None:
                full.add(kind)
                left.append(each)
                continue
            self.world = self.world.with_pod_placed(_as_running(each.pod, each.replacement), node)
            ledger = BudgetLedger(self.world.objects.budgets)
            ledger.refill(each.pod)
            if (budgets := ledger.budgets()) != self.world.objects.budgets:
                self.world = self.world.with_objects(budgets=budgets)
            self.waits.append(_over(each, self.now))
            if node != each.pod.node_name:
                self.moves.append(Move(pod=each.pod.key, source=each.pod.node_name, target=node, at=self.now))
        self.homeless = left

    def _place_of(self, pod: Pod) -> str | None:
        try:
            result = self.scheduler.schedule(self.world, pod)
        except NoProfileError:
            return None
        if result.node is None or result.unknown or result.error:
            return None
        self.is_open = self.is_open or len(result.best) > 1 or result.sample is not None
        equals = (result.node, *(name for name in result.best if name != result.node))
        return equals[self.draw.among(len(equals), f"{pod.key} {self.now}")]

    # ---- the account ----

    def _note(self, met: Sequence[tuple[str, Obstacle]], seconds: float = 0.0) -> None:
        subjects = {(obstacle.rule, obstacle.subject) for _, obstacle in met}
        for key in subjects:
            total, names = self.met.setdefault(key, (0.0, set()))
            names.update(name for name, obstacle in met if (obstacle.rule, obstacle.subject) == key)
            self.met[key] = (total + seconds, names)

    def _book(self, met: Sequence[tuple[str, Obstacle]], seconds: float) -> None:
        if met:
            self._note(met, seconds)

    def _timeline(self) -> Timeline:
        done = {visit.node: visit.end for visit in self.visits if not visit.undone}
        ends = max([visit.end for visit in self.visits], default=self.begins)
        return Timeline(
            begins=self.begins,
            ends=ends,
            nodes=self.nodes,
            visits=tuple(sorted(self.visits, key=lambda visit: (visit.start, visit.node))),
            moves=tuple(self.moves),
            waits=(*self.waits, *(_over(each, None) for each in self.homeless)),
            lost=tuple(self.lost),
            unknown=tuple(self.unknown),
            closings=self._closings(done, ends),
            hindrances=tuple(
                sorted(
                    (
                        Hindrance(rule=rule, subject=subject, seconds=seconds, nodes=tuple(sorted(names)))
                        for (rule, subject), (seconds, names) in self.met.items()
                    ),
                    key=lambda each: (-each.seconds, each.rule, each.subject),
                )
            ),
            left=tuple(Left(node=name, obstacle=self._why_left(name)) for name in self.nodes if name not in done),
            is_open=self.is_open,
        )

    def _closings(self, done: Mapping[str, datetime], ends: datetime) -> tuple[Closing, ...]:
        """Each end of a window at which somebody was left, up to the end of the roll-out."""
        closings: list[Closing] = []
        at = self.rules.next_closing(self.begins)
        while at is not None and len(closings) < _MOST_CLOSINGS:
            left = sum(1 for name in self.nodes if name not in done or done[name] > at)
            if left == 0:
                break
            closings.append(Closing(at=at, left=left))
            if at >= ends:
                break
            opening = self.rules.next_opening(at + timedelta(seconds=1))
            at = self.rules.next_closing(opening) if opening else None
        return tuple(closings)

    def _why_left(self, name: str) -> Obstacle:
        if name in self.work:
            return Obstacle(
                rule="time", subject="the simulation ended", sentence="the simulated time ended while it was at work"
            )
        found = self.rules.refusal(name, self.now, None) or self._ask(name)
        return found or Obstacle(
            rule="time",
            subject="the simulation ended",
            sentence=f"its turn did not come before {self.ends_by:%Y-%m-%d %H:%M}",
        )


def _as_running(pod: Pod, replacement: Pod) -> Pod:
    """The replacement once it runs, known by the name and as healthy as the pod that it stands for."""
    return replace_value(replacement, name=pod.name, uid=pod.uid, phase="Running", is_ready=pod.is_ready)


def _over(each: _Waiting, until: datetime | None) -> Wait:
    return Wait(
        pod=each.pod.key, node=each.pod.node_name, since=each.since, until=until, returns=each.returns, why=each.why
    )


def _kind(pod: Pod) -> Hashable:
    owner = pod.owner
    is_alike = owner is not None and owner.kind != "StatefulSet"  # whose pods have claims of their own
    return (pod.namespace, owner.kind, owner.uid or owner.name, pod.priority) if owner and is_alike else pod.key
