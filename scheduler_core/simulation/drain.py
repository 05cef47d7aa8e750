"""Drain nodes of a snapshot without touching anything: cordon, evict under the budgets, let controllers recreate, run cycles until still.

A drained node is cordoned, not removed: it stays a topology domain, as on a real cluster. Evictions go in the order given; a
replacement is judged by its controller's timing (`replacements.py`), budgets by the eviction API's rules (`evictions.py`).
What is not simulated: new nodes (no autoscaler), other people's changes, and the time that pods take to start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import CycleResult, NoProfileError, Scheduler
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evictions import BudgetLedger, EvictionRefusal
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast, RunnerUp
from scheduler_core.simulation.remedies import remedies
from scheduler_core.simulation.replacements import Recreation, recreation_of, replacement_of
from scheduler_core.simulation.returning import only_drained_nodes_can_hold
from scheduler_core.snapshot.snapshot import Snapshot

_MOST_PREEMPTIONS = 200   # a chain of preemptions always ends, because priorities fall; this guards against our own mistake


def simulate_drain(
    snapshot: Snapshot, node_names: Sequence[str], *, made_at: str,
    configuration: Configuration | None = None, kube_version: str = "1.36",
) -> tuple[Forecast, ...]:
    """Where each pod of the nodes would land if they were drained now, together: one forecast per node, in the order given.

    `made_at` (RFC 3339) says when the snapshot was read and is passed through. Raises UnknownNodeError for a node that the snapshot
    does not have; the snapshot itself is never changed.
    """
    return run_drain(snapshot, node_names, Scheduler(configuration, kube_version), made_at=made_at).forecasts


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedDrain:
    """The forecasts, and the cluster as the drain leaves it: nodes cordoned, budgets spent as far as no replacement refilled them.

    Replacements that landed stand in `world` as the scheduler bound them, not running yet; `displaced` has them and those that wait.
    """

    forecasts: tuple[Forecast, ...]
    world: Snapshot
    displaced: tuple[Displaced, ...]


def run_drain(snapshot: Snapshot, node_names: Sequence[str], scheduler: Scheduler, *, made_at: str = "", tries_remedies: bool = True) -> FinishedDrain:
    """As `simulate_drain`, for callers that go on from there. Trying what would place a pending pod costs more than the drain itself."""
    drain = _Drain(snapshot, node_names, scheduler, tries_remedies)
    drain.run()
    forecasts = tuple(
        Forecast(node=name, made_at=made_at, pods=tuple(drain.outcomes(name)), notes=tuple(drain.notes)) for name in node_names
    )
    spent = drain.ledger.budgets()
    world = drain.world if spent == snapshot.objects.budgets else drain.world.with_objects(budgets=spent)
    return FinishedDrain(forecasts=forecasts, world=world, displaced=tuple(drain.displaced.values()))


@dataclass(slots=True)
class Displaced:
    """A pod that left its place and the replacement that looks for another; `arrival` is the place in the queue."""

    pod: Pod
    replacement: Pod
    arrival: int
    result: CycleResult | None = None
    landed: bool = False
    unknown: str = ""        # why nobody here can tell where it goes


@dataclass(slots=True)
class _Drain:
    """One simulated drain: the state of the world between two steps."""

    before: Snapshot
    node_names: Sequence[str]
    scheduler: Scheduler
    tries_remedies: bool
    world: Snapshot = field(init=False)
    ledger: BudgetLedger = field(init=False)
    displaced: dict[str, Displaced] = field(init=False, default_factory=dict)    # by the evicted pod's key
    refused: dict[str, EvictionRefusal] = field(init=False, default_factory=dict)
    notes: list[str] = field(init=False, default_factory=list)
    arrivals: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.world = self.before
        for name in self.node_names:
            self.world = self.world.with_node_cordoned(name)
        self.ledger = BudgetLedger(self.before.objects.budgets)

    def run(self) -> None:
        """Rounds of evictions, each as large as the budgets allow, until a round moves nothing."""
        remaining = [pod for name in self.node_names for pod in self.before.pods_on(name) if recreation_of(pod) is not Recreation.STAYS]
        while remaining:
            evicted = self._evict(remaining)
            if not evicted:
                break
            gone = {pod.key for pod in evicted}
            remaining = [pod for pod in remaining if pod.key not in gone]
            self._recreate(evicted)
        self._note_preempted()

    def _evict(self, pods: Iterable[Pod]) -> list[Pod]:
        evicted = []
        for pod in pods:
            refusal = self.ledger.refusal(pod)
            if refusal:
                self.refused[pod.key] = refusal
                continue
            self.refused.pop(pod.key, None)
            self.ledger.spend(pod)
            self.world = _with_pod_terminating(self.world, pod)
            evicted.append(pod)
        return evicted

    def _recreate(self, evicted: Sequence[Pod]) -> None:
        """Replacements that are made at once are judged beside their terminating predecessors; what they could not have then, they get after."""
        self._enqueue(pod for pod in evicted if recreation_of(pod) is Recreation.AT_ONCE)
        self._schedule()
        for pod in evicted:
            self.world = self.world.without_pod(pod.key)
        self._enqueue(pod for pod in evicted if recreation_of(pod) is Recreation.AFTER_IT_IS_GONE)
        self._schedule()

    def _enqueue(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self.displaced[pod.key] = Displaced(pod, replacement_of(pod), self.arrivals)
            self.arrivals += 1

    def _schedule(self) -> None:
        """Cycles in queue order (priority, then arrival) until none of the waiting pods can be placed."""
        for _ in range(_MOST_PREEMPTIONS):
            waiting = sorted((d for d in self.displaced.values() if not d.landed), key=lambda d: (-d.pod.priority, d.arrival))
            preempted = [victim for each in waiting for victim in self._place(each)]
            if not preempted:
                return
            self._enqueue(victim for victim in preempted if recreation_of(victim) in (Recreation.AT_ONCE, Recreation.AFTER_IT_IS_GONE))

    def _place(self, each: Displaced) -> list[Pod]:
        """One cycle for one pod; gives the pods that lost their place to it by preemption."""
        try:
            each.result = self.scheduler.schedule(self.world, each.replacement)
        except NoProfileError:
            each.unknown = f"is scheduled by {each.pod.spec.scheduler_name}, whose profile is not known here (--scheduler-config)"
            return []
        each.unknown = each.result.unknown or each.result.error
        node, victims = each.result.node, []
        if node is None and each.result.preemption is not None:
            node = each.result.preemption.node
            victims = [pod for pod in self.world.pods_on(node) if pod.key in set(each.result.preemption.victims)]
        if node is None:
            return []
        for victim in victims:
            self.world = self.world.without_pod(victim.key)
        # A cycle's own landing also promises volumes to the pod's claims; after a preemption that choice belongs to a later cycle.
        self.world = self.world.with_pod_placed(each.replacement, node) if each.result.node is None else self.scheduler.place(self.world, each.result)
        each.replacement = each.replacement.on_node(node)
        each.landed = True
        if not victims:
            self.ledger.refill(each.pod)
        return victims

    def outcomes(self, node_name: str) -> Iterable[PodForecast]:
        """Every pod of the node with its outcome, in eviction order."""
        return (self._outcome(pod) for pod in self.before.pods_on(node_name))

    def _outcome(self, pod: Pod) -> PodForecast:
        recreation = recreation_of(pod)
        if recreation is Recreation.STAYS:
            return _say(pod, Outcome.STAYS, "stays on the node through the reboot (DaemonSet or static pod)")
        refusal = self.refused.get(pod.key)
        if refusal:
            return _say(pod, Outcome.BLOCKED, refusal.sentence, is_never=refusal.is_never, budget=refusal.budget)
        if recreation is Recreation.NEVER:
            return _say(pod, Outcome.LOST, "has no controller that would recreate it")
        return self._landing(self.displaced[pod.key])

    def _landing(self, each: Displaced) -> PodForecast:
        if each.unknown:
            return _say(each.pod, Outcome.UNKNOWN, each.unknown)
        result = each.result
        assert result is not None, "every replacement was judged at least once"
        if each.landed and result.node is None:
            return _say(each.pod, Outcome.MOVES, f"preempts its way onto {each.replacement.node_name}", landing=(each.replacement.node_name,))
        if each.landed:
            return _say(each.pod, Outcome.MOVES, _landing_sentence(result.best), landing=result.best, **_scores(result))
        if only_drained_nodes_can_hold(self.scheduler, self.world, self.node_names, each.replacement):
            return _say(each.pod, Outcome.RETURNS, "only this node can hold it: it waits out the reboot")
        ways_out = remedies(self.scheduler, self.world, each.replacement, result, frozenset(self.node_names)) if self.tries_remedies else ()
        return _say(each.pod, Outcome.PENDING, result.sentence, remedies=ways_out)

    def _note_preempted(self) -> None:
        mine = set(self.node_names)
        for each in self.displaced.values():
            if each.pod.node_name not in mine:
                where = f"moves to {each.replacement.node_name}" if each.landed else "would stay pending"
                self.notes.append(f"{each.pod.key} on {each.pod.node_name} would be preempted and {where}")


def _with_pod_terminating(world: Snapshot, pod: Pod) -> Snapshot:
    return world.without_pod(pod.key).with_pod_placed(replace(pod, terminating=True), pod.node_name)


def _landing_sentence(best: Sequence[str]) -> str:
    if len(best) == 1:
        return f"fits best on {best[0]}"
    return f"fits equally well on {', '.join(best[:-1])} and {best[-1]}"


def _scores(result: CycleResult) -> dict[str, object]:
    if result.highest_total is None:
        return {}
    second = result.runner_up
    return {"score": result.highest_total, "runner_up": None if second is None else RunnerUp(node=second[0], score=second[1])}


def _say(pod: Pod, outcome: Outcome, sentence: str, **evidence: object) -> PodForecast:
    return PodForecast(
        namespace=pod.namespace, name=pod.name, uid=pod.uid, outcome=outcome, sentence=sentence,
        owner=f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner else "",
        loses_data=outcome is not Outcome.STAYS and any(volume.kind == "emptyDir" for volume in pod.spec.volumes),
        **evidence,  # type: ignore[arg-type]  # the callers above name fields of PodForecast
    )
