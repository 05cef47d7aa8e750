"""Simulates drains of a snapshot's nodes: cordons, evictions under the disruption budgets, replacements by controllers,
and cycles until no pod moves.

A drained node is cordoned, not removed, so it is still a topology domain, as on a real cluster. `scenarios.py` has the
steps of a drain and handles nodes with equal scores, `replacements.py` says when controllers create replacements,
`evictions.py` has the eviction API's rules for budgets. Not simulated: an autoscaler, changes by other people, and the
time that pods take to start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from msgspec import field

from scheduler_core.arguments import checked
from scheduler_core.config.configuration import Configuration
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import NodeSample
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.manifests.fields import clock_at
from scheduler_core.model.pod import Pod
from scheduler_core.sentences import first_few
from scheduler_core.simulation.evicted.evictions import BudgetLedger, EvictionRefusal
from scheduler_core.simulation.evicted.jobs import JobsAfter, job_of
from scheduler_core.simulation.evicted.opening_budgets import OpeningBudgets
from scheduler_core.simulation.evicted.replacements import (
    BOUND,
    Recreation,
    StaysBecause,
    beside_the_bound,
    ends_already,
    eviction_order,
    is_bound,
    moves_all,
    recreation_of,
    why_it_stays,
)
from scheduler_core.simulation.evicted.returning import who_returns
from scheduler_core.simulation.forecast import Forecast, Opens, Outcome, PodForecast, RunnerUp
from scheduler_core.simulation.landings import CONFIDENCE, Landing, landings
from scheduler_core.simulation.remedies import remedies
from scheduler_core.simulation.sampled_notes import batch_notes, counted, sample_notes
from scheduler_core.simulation.scenario_parts.displaced import Displaced, kind_of
from scheduler_core.simulation.scenario_parts.eviction_rounds import EvictionRounds
from scheduler_core.simulation.scenarios import NOTHING_DRAWN, Scenario, follow
from scheduler_core.simulation.searches import MOST_SEARCHES, Draw, Likely, possible_searches
from scheduler_core.snapshot.left_out import left_out
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

# Enough for a dozen pods with a few ties. If more are possible, the forecast says so.
MOST_SCENARIOS = 24
# In large clusters a scenario costs more time, and most pods have many equally good nodes: a few scenarios find nearly
# as many of these nodes as many would.
LEAST_SCENARIOS = 4
_SCENARIOS_TIMES_NODES = 20_000
# The same holds for searches: each soon becomes a separate scenario with its own cluster.
LEAST_SEARCHES = 32
_SEARCHES_TIMES_NODES = 160_000
_PREEMPTS_IN_PART = ", or on another node: kube-scheduler tries only some nodes, beginning at a random node"
# For a pod that fits nowhere, the scheduler also searches for pods to preempt, which takes time. Pending pods of
# further kinds than so many are only counted.
MOST_WAITING_KINDS = 30


def most_searches(nodes: int) -> int:
    """How many possible searches a simulated drain considers in a cluster of so many nodes."""
    return max(LEAST_SEARCHES, min(MOST_SEARCHES, _SEARCHES_TIMES_NODES // nodes))


@checked
def simulate_drain(
    snapshot: Snapshot,
    node_names: Sequence[str],
    *,
    made_at: str = "",
    configuration: Configuration | None = None,
    kube_version: str | KubeVersion = "1.36",
    most_scenarios: int | None = None,
    start: int | None = None,
    searches: tuple[Likely, ...] | None = None,
    stays: StaysBecause = moves_all,
) -> tuple[Forecast, ...]:
    """Forecasts where the pods of these nodes would land if all of them were drained together now: one forecast per
    node, in the order of `node_names`. The snapshot does not change.

    `made_at` (RFC 3339), the time of the snapshot, is copied to the forecasts, and decides whether a claim's device had
    too long to get ready. `most_scenarios` is by default
    `MOST_SCENARIOS`, and fewer from about 800 nodes on. `stays` says which pods the drain leaves on the node. Raises
    UnknownNodeError if a node is missing from the snapshot, ValueError if `made_at` is another text than a time.

    Two arguments matter only if the scheduler checks a part of the nodes: `start`, where its next search starts, if
    known, and `searches`, possible searches that the caller has learned (`SearchEstimate.searches`).
    """
    clock = clock_at(made_at)
    if made_at and clock is None:
        raise ValueError(f"made_at is {made_at!r}, expected a time of RFC 3339 such as '2026-01-05T08:00:00Z', or ''")
    nodes = max(1, len(snapshot.nodes))
    most = most_scenarios or max(LEAST_SCENARIOS, min(MOST_SCENARIOS, _SCENARIOS_TIMES_NODES // nodes))
    scheduler = Scheduler(configuration, kube_version, clock=clock)
    follows_few = searches is None and start is None
    if searches is None:
        searches = possible_searches(snapshot, scheduler, most_scenarios or most_searches(nodes), start)
        asked = min(most_scenarios or MOST_SEARCHES, most_searches(nodes))
        # Extenders refuse nodes after the search has stopped, which `shares_of_any_start` cannot consider.
        follows_few = follows_few and asked < MOST_SEARCHES and not scheduler.extenders
    most = max(most, len(searches))
    return run_drain(
        snapshot,
        node_names,
        scheduler,
        searches=searches,
        made_at=made_at,
        most_scenarios=most,
        with_pending=True,
        stays=stays,
        counts_any_start=follows_few,
    ).forecasts


class FinishedDrain(Value, kw_only=True):
    """The forecasts of a drain, and the cluster after it: the drained nodes are cordoned, and the disruption budgets
    have counted the evictions and the healthy replacements.

    In `world`, replacements with a node are bound but do not run yet; `displaced` has these and the displaced pods
    without a node. Both show the main scenario.
    """

    forecasts: tuple[Forecast, ...]
    world: Snapshot
    displaced: tuple[Displaced, ...]
    searches: tuple[Likely, ...] = ()  # the scheduler's possible searches after the drain
    is_open: bool = False  # a random choice decided something: another drain may differ


def run_drain(
    snapshot: Snapshot,
    node_names: Sequence[str],
    scheduler: Scheduler,
    *,
    made_at: str = "",
    with_details: bool = True,
    most_scenarios: int = 1,
    with_pending: bool = False,
    searches: tuple[Likely, ...] = (),
    stays: StaysBecause = moves_all,
    draw: Draw = NOTHING_DRAWN,
    counts_any_start: bool = False,
    preempts: bool = True,
) -> FinishedDrain:
    """Does the work of `simulate_drain`, for callers that continue with the cluster after the drain.

    `with_details` adds to the forecasts the notes, the changes that would give a pending pod a node (which take longer
    than the drain itself), and of each moving pod the sentence where it moves, its scores and all nodes that may take
    it. Without details, a moving pod has one node.

    `with_pending` also places the snapshot's pending pods. If more than `most_scenarios` are possible, `draw` chooses.
    Set `counts_any_start` if nothing is known of the scheduler's search: only some starts are simulated, and each
    forecast then also considers the nodes that the others would choose. Without `preempts`, a pod that fits nowhere
    stays pending, which takes less time.
    """
    stays = beside_the_bound(snapshot.objects, stays)
    first = _first_scenario(
        snapshot, node_names, scheduler, stays, with_pending=with_pending, with_details=with_details
    )
    first.searches, first.counts_any_start, first.preempts = searches, counts_any_start, preempts
    first.names_left_out = with_details or most_scenarios > 1
    scenarios = follow(first, most_scenarios, draw)
    report = _Report(snapshot, tuple(node_names), scheduler, scenarios, landings(scenarios), with_details, stays)
    notes, main = tuple(report.notes()) if with_details else (), scenarios[0]
    forecasts = tuple(
        Forecast(
            node=name,
            made_at=made_at,
            pods=tuple(report.outcomes(name)),
            notes=notes,
            scenarios=len(scenarios),
            already_pending=len(snapshot.pending),
            left_out=tuple(sorted(pod.uid for pod in snapshot.pods_on(name) if pod.spec.is_left_out)),
        )
        for name in node_names
    )
    displaced = tuple(main.displaced.values())
    return FinishedDrain(
        forecasts=forecasts,
        world=_left_by(main, snapshot),
        displaced=displaced,
        searches=main.searches,
        is_open=len(scenarios) > 1 or main.is_cut or any(each.result and each.result.sample for each in displaced),
    )


def _left_by(main: Scenario, before: Snapshot) -> Snapshot:
    """The cluster after the scenario: budgets have counted its evictions and Jobs their failed pods. If a Job failed
    because of them, its remaining pods are gone."""
    world, spent = main.world, main.rounds.ledger.budgets()
    if spent != before.objects.budgets:
        world = world.with_objects(budgets=spent)
    if main.jobs is not None:
        for pod in _gone_with_their_jobs(main.jobs, world):
            world = world.without_pod(pod.key)
        world = world.with_objects(jobs=main.jobs.jobs)
    return world


def _gone_with_their_jobs(after: JobsAfter, world: Snapshot) -> list[Pod]:
    """The remaining pods of the Jobs that failed because of the evictions: the Job controller deletes them."""
    if not after.failing:
        return []
    return [
        pod for pod in world.placed_pods if (job := job_of(after.jobs, pod)) is not None and job.key in after.failing
    ]


def _first_scenario(
    snapshot: Snapshot,
    node_names: Sequence[str],
    scheduler: Scheduler,
    stays: StaysBecause,
    *,
    with_pending: bool,
    with_details: bool = True,
) -> Scenario:
    world = snapshot
    for name in node_names:
        world = world.with_node_cordoned(name)
    pods = [pod for name in node_names for pod in _in_order(snapshot, name) if not why_it_stays(pod, stays)]
    leaving, ending = (
        tuple(pod for pod in pods if not ends_already(pod)),
        tuple(pod for pod in pods if ends_already(pod)),
    )
    scenario = Scenario(
        scheduler,
        world,
        EvictionRounds(BudgetLedger(snapshot.objects.budgets, OpeningBudgets(snapshot)), leaving, ending),
        reports_scores=with_details,
    )
    if with_pending:
        scenario.queue.add_waiting(_who_waits(snapshot, scheduler))
    return scenario


def _who_waits(snapshot: Snapshot, scheduler: Scheduler) -> list[Pod]:
    """The pending pods that this scheduler would try to place, the highest priority first; of at most
    `MOST_WAITING_KINDS` kinds."""
    kinds: set[Hashable] = set()
    found = []
    for pod in sorted(snapshot.pending, key=lambda pod: (-pod.priority, pod.key)):
        if pod.spec.scheduling_gates or pod.spec.scheduler_name not in scheduler.runners:
            continue
        kind = kind_of(pod)
        if kind in kinds or len(kinds) < MOST_WAITING_KINDS:
            kinds.add(kind)
            found.append(pod)
    return found


def _in_order(snapshot: Snapshot, node_name: str) -> list[Pod]:
    return sorted(snapshot.pods_on(node_name), key=eviction_order)


class _Report(Value):
    """Turns the results of all scenarios into the sentences of the forecasts."""

    before: Snapshot
    node_names: tuple[str, ...]
    scheduler: Scheduler
    scenarios: Sequence[Scenario]
    landings: dict[str, Landing]
    with_details: bool
    stays: StaysBecause
    returning: dict[int, frozenset[str]] = field(default_factory=dict)  # computed once for each scenario, by its id

    def outcomes(self, node_name: str) -> Iterable[PodForecast]:
        """Every pod of the node with its outcome, in eviction order, without those that already terminate."""
        return (self._outcome(pod) for pod in _in_order(self.before, node_name) if not ends_already(pod))

    def _outcome(self, pod: Pod) -> PodForecast:
        if why := why_it_stays(pod, self.stays):
            return _say(pod, Outcome.STAYS, why, is_bound=is_bound(self.before.objects, pod) and why == BOUND)
        if opened := self.scenarios[0].rounds.opened.get(pod.key):
            return self._slow(pod, opened)
        refusal = self.scenarios[0].rounds.refused.get(pod.key)
        if refusal and not refusal.is_never and (budget := self._kept_by_the_drain(refusal)):
            return self._kept(pod, refusal, budget)
        if refusal:
            return _say(
                pod,
                Outcome.BLOCKED,
                refusal.sentence,
                is_never=refusal.is_never,
                budget=refusal.budget,
                remedies=(refusal.remedy,) if refusal.remedy else (),
            )
        if recreation_of(pod) is Recreation.NEVER:
            return _say(pod, Outcome.LOST, "no controller would recreate the pod")
        jobs = self.scenarios[0].jobs
        if jobs is not None and pod.key in jobs.lost:
            return _say(pod, Outcome.LOST, jobs.lost[pod.key])
        return self._landing(self.landings[pod.key])

    def _slow(self, pod: Pod, refusal: EvictionRefusal) -> PodForecast:
        """The landing of a slow pod, evicted after all others. Its budget makes it *blocked*, unless it would find no
        room."""
        jobs = self.scenarios[0].jobs
        is_lost = recreation_of(pod) is Recreation.NEVER or (jobs is not None and pod.key in jobs.lost)
        landed = None if is_lost else self._landing(self.landings[pod.key])
        if landed is not None and landed.outcome in (Outcome.PENDING, Outcome.UNKNOWN) and not pod.spec.is_left_out:
            return landed
        then = "no controller would recreate the pod" if landed is None else landed.sentence
        said = _say(
            pod,
            Outcome.BLOCKED,
            f"{refusal.sentence}; evicted last, {_it(then)}" if then else refusal.sentence,
            budget=refusal.budget,
            opens=Opens.UNSEEN,
            owner_uid=pod.owner.uid if pod.owner else "",
        )
        return said if landed is None else replace_value(said, landing=landed.landing, shares=landed.shares)

    def _kept(self, pod: Pod, refusal: EvictionRefusal, budget: DisruptionBudget) -> PodForecast:
        why, may_open = self._why_kept(budget), self.scenarios[0].rounds.ledger.may_open(pod, budget)
        if not may_open:
            return _say(pod, Outcome.BLOCKED, f"{why}: waiting cannot help", is_never=True, budget=refusal.budget)
        return _say(
            pod,
            Outcome.BLOCKED,
            f"{why}; the budget may open during the drain, because {may_open}",
            budget=refusal.budget,
            opens=Opens.UNSEEN,
            owner_uid=pod.owner.uid if pod.owner else "",
        )

    def _kept_by_the_drain(self, refusal: EvictionRefusal) -> DisruptionBudget | None:
        """The budget, if it must refuse the eviction until the drained node is back: evicted pods of this budget can
        run only there. None if the drain can wait for the budget."""
        numbers = refusal.budget
        budget = next(
            (
                each
                for each in self.before.objects.budgets
                if numbers and (each.namespace, each.name) == (numbers.namespace, numbers.name)
            ),
            None,
        )
        if numbers is None or budget is None:
            return None
        away = self._away(budget)
        return budget if away and numbers.expected_pods - len(away) <= numbers.desired_healthy else None

    def _away(self, budget: DisruptionBudget) -> list[Displaced]:
        scenario = self.scenarios[0]
        return [
            each
            for each in scenario.displaced.values()
            if each.replacement.key in self._returning(scenario)
            and each.pod.namespace == budget.namespace
            and budget.selector.matches(each.pod.labels)
        ]

    def _why_kept(self, budget: DisruptionBudget) -> str:
        return (
            f"disruption budget {budget.key} wants {budget.desired_healthy} healthy of "
            f"{budget.expected_pods} pods, and {counted(len(self._away(budget)), 'pod')} "
            f"evicted earlier can return only to this node"
        )

    def _landing(self, landing: Landing) -> PodForecast:
        each = landing.main
        if each.unknown:
            return _say(each.pod, Outcome.UNKNOWN, each.unknown)
        if landing.homeless and landing.homeless_share > 1 - CONFIDENCE:
            return self._homeless(landing, *landing.homeless)
        if not self.with_details:
            return _say(each.pod, Outcome.MOVES, "", landing=(each.replacement.node_name,))
        result, nodes, shares = each.result, *_named(landing)
        assert result is not None, "the scheduler has tried every replacement at least once"
        if result.node is None:
            return _say(
                each.pod,
                Outcome.MOVES,
                f"preempts pods on {listed(nodes, 'or')}"
                + ("" if not landing.preempts_in_part else _PREEMPTS_IN_PART)
                + (f"; {result.preemption.doubt}" if result.preemption and result.preemption.doubt else ""),
                landing=nodes,
                shares=shares,
                is_cut=landing.is_open,
            )
        sentence = _shares_sentence(nodes, shares) if shares else _landing_sentence(result.best, nodes)
        return _say(
            each.pod,
            Outcome.MOVES,
            sentence + _sample_clause(landing.sample) + _homeless_clause(landing),
            landing=nodes,
            shares=shares,
            is_cut=landing.is_open,
            **_scores(each),
        )

    def _homeless(self, landing: Landing, scenario: Scenario, each: Displaced) -> PodForecast:
        pod, result, nodes, shares = landing.main.pod, each.result, *_named(landing)
        if each.unknown or result is None:
            return _say(pod, Outcome.UNKNOWN, each.unknown)
        if each.replacement.key in self._returning(scenario):
            return _say(pod, Outcome.RETURNS, "only this node can run the pod: the pod waits until the reboot is over")
        ways_out = (
            remedies(self.scheduler, scenario.world, each.replacement, result, frozenset(self.node_names))
            if self.with_details
            else ()
        )
        when = (
            f"finds no room in {landing.homeless_share:.0%} of cases"
            if shares
            else "finds room only in some scenarios, because earlier pods may land on different nodes"
        )
        sentence = f"{when.replace('%', ' %')}: {result.sentence}" if nodes else result.sentence
        return _say(
            pod, Outcome.PENDING, sentence, remedies=ways_out, landing=nodes, shares=shares, is_cut=landing.is_open
        )

    def _returning(self, scenario: Scenario) -> frozenset[str]:
        known = self.returning.get(id(scenario))
        if known is None:
            homeless = [
                each.replacement
                for each in scenario.displaced.values()
                if not (each.landed or each.unknown or each.waited)
            ]
            known = self.returning[id(scenario)] = who_returns(
                self.scheduler, scenario.world, self.node_names, homeless
            )
        return known

    def _job_notes(self) -> Iterable[str]:
        main = self.scenarios[0]
        if main.jobs is None:
            return
        gone = Counter(
            f"{pod.namespace}/{pod.owner.name}" for pod in _gone_with_their_jobs(main.jobs, main.world) if pod.owner
        )
        for job, number in sorted(gone.items()):
            yield f"Job {job} would fail, and the Job controller would delete {counted(number, 'other pod')}"

    def notes(self) -> Iterable[str]:
        """First what the drain does to other pods: pending ones that find a node, preempted ones, those of failing
        Jobs. Then DaemonSet pods of the drained nodes that are not ready, and how many pods already terminate. Last,
        what the forecast does not know."""
        mine, displaced = set(self.node_names), self.scenarios[0].displaced.values()
        places = [
            f"{each.pod.key} on {each.replacement.node_name}" for each in displaced if each.waited and each.landed
        ]
        if places:
            verb = "is" if len(places) == 1 else "are"
            yield f"{counted(len(places), 'pod')} that {verb} already pending would find a node: {first_few(places)}"
        for each in displaced:
            if not each.waited and each.pod.node_name not in mine:
                where = f"moves to {each.replacement.node_name}" if each.landed else "would stay pending"
                yield f"{each.pod.key} on {each.pod.node_name} would be preempted and {where}"
        yield from self._job_notes()
        ailing = sorted(
            pod.key for name in self.node_names for pod in self.before.pods_on(name) if _is_ailing_daemon(pod)
        )
        if ailing:
            yield (
                f"{counted(len(ailing), 'DaemonSet pod')} of the node {'is' if len(ailing) == 1 else 'are'} "
                f"already not ready: {first_few(ailing)}"
            )
        if ending := sum(1 for name in self.node_names for pod in self.before.pods_on(name) if ends_already(pod)):
            yield f"{counted(ending, 'pod')} of the node {'is' if ending == 1 else 'are'} already terminating"
        yield from left_out(self.before)
        yield from sample_notes(tuple(self.landings.values()))
        yield from batch_notes(self.scheduler, self.scenarios[0].displaced.values())
        if cut := sum(1 for landing in self.landings.values() if landing.is_cut):
            yield (
                f"more scenarios are possible than the {len(self.scenarios)} that were simulated: "
                f"{counted(cut, 'pod')} may get nodes that are not listed"
            )


def _is_ailing_daemon(pod: Pod) -> bool:
    return pod.owner is not None and pod.owner.kind == "DaemonSet" and not (pod.is_ready or pod.terminating)


def _it(landing: str) -> str:
    return landing if landing.startswith(("only", "no ")) else f"the pod {landing}"


def _landing_sentence(best: Sequence[str], nodes: Sequence[str]) -> str:
    """First `best`, the nodes with the highest score in the main scenario, then those that have it only in other
    scenarios."""
    equals = set(best)
    others = [name for name in nodes if name not in equals]
    first = f"fits best on {best[0]}" if len(best) == 1 else f"fits equally well on {listed(best, 'and')}"
    return (
        f"{first}, or on {listed(others, 'or')} if an earlier pod gets another node than in the main scenario"
        if others
        else first
    )


def _named(landing: Landing) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The landing's nodes for the sentence, and their probabilities from 0 to 1; none if they are unknown."""
    named = landing.named
    return tuple(name for name, _ in named), tuple(round(share, 4) for _, share in named if share)


def _shares_sentence(nodes: Sequence[str], shares: Sequence[float], most: int = 6) -> str:
    """For example "most likely lands on n7 (52 %), n2 (31 %) or n9 (9 %)". `nodes` and their `shares` begin with the
    most likely. After `most` nodes it ends, for example, with "or on one of 3 other nodes"; but if the first of so
    many is less than twice as likely as the last: "lands on one of 9 nodes, each about equally likely"."""
    if len(nodes) > most and shares[0] < 2 * shares[-1]:
        return f"lands on one of {len(nodes)} nodes, each about equally likely"
    parts = [f"{name} ({share:.0%})".replace("%", " %") for name, share in zip(nodes, shares, strict=True)]
    if len(parts) > most:
        return f"most likely lands on {', '.join(parts[:most])}, or on one of {len(parts) - most} other nodes"
    return f"{'most likely ' if shares[0] < 1 else ''}lands on {listed(parts, 'or')}"


def _homeless_clause(landing: Landing) -> str:
    share = landing.homeless_share
    return f"; in {max(0.01, share):.0%} of cases the pod finds no room".replace("%", " %") if share else ""


def _sample_clause(sample: NodeSample | None) -> str:
    return f"; kube-scheduler checks {sample.looked_at} of the {sample.feasible} nodes that fit" if sample else ""


def listed(names: Sequence[str], word: str) -> str:
    """Such as "a", "a or b", "a, b or c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def _scores(each: Displaced) -> dict[str, object]:
    if each.score is None:
        return {}
    second = each.runner_up
    return {
        "score": each.score,
        "runner_up": None if second is None else RunnerUp(node=second[0], score=second[1]),
    }


def _say(pod: Pod, outcome: Outcome, sentence: str, **evidence: object) -> PodForecast:
    if pod.wants_rest and outcome is not Outcome.STAYS:
        asks = f"the pod asks not to be disturbed ({pod.wants_rest})"
        sentence = f"{sentence}; {asks}" if sentence else asks
    return PodForecast(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        outcome=outcome,
        sentence=sentence,
        owner=f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner else "",
        wants_rest=pod.wants_rest,
        loses_data=outcome is not Outcome.STAYS and any(volume.kind == "emptyDir" for volume in pod.spec.volumes),
        **evidence,  # type: ignore[arg-type]  # the callers above name fields of PodForecast
    )
