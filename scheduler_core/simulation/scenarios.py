"""Follows the possible scenarios of one drain, from the first eviction until no pod moves.

Evictions are requested one after another. A replacement that is created at once is placed before the next eviction: on
a real cluster an eviction takes a tenth of a second, and a replacement gets its node in a tenth of that. That of a
StatefulSet's pod appears when the old pod is gone, that of a Job's pod still later.

A scenario divides if several nodes have the same score, because the scheduler may take any, and when several pods end,
because any may be first. Scenarios that have become equivalent are joined again. `most` limits their number; if some
are left out, pods placed later are marked, because a node may be missing from their results. `landings.py` combines the
results.

If the scheduler checks only a part of the nodes, a scenario also has the searches that lead to it, with their
probabilities (`searches.py`), and divides where they find different nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.jobs import JobsAfter, after_evictions
from scheduler_core.simulation.evicted.replacements import Recreation, recreation_of
from scheduler_core.simulation.scenario_parts.any_start import shares_of_any_start
from scheduler_core.simulation.scenario_parts.displaced import Displaced
from scheduler_core.simulation.scenario_parts.eviction_rounds import EvictionRounds
from scheduler_core.simulation.scenario_parts.placement_queue import PlacementQueue
from scheduler_core.simulation.searches import Draw, Likely, Shares, Way, after_others, are_few, ways, weight_of
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

NOTHING_DRAWN = Draw()
_NEXT_ROUND = "(the next round of evictions, before the pods in the pool)"  # no API name has this form
# The seconds since the previous cycle, in which other pods may be bound: a drain evicts about ten pods a second, a
# StatefulSet waits until the evicted pod has ended, and a Job waits ten seconds or more.
_SECONDS_BEFORE: Mapping[Recreation, float] = defaultdict(
    lambda: 0.1, {Recreation.AFTER_IT_IS_GONE: 1.0, Recreation.MUCH_LATER: 5.0}
)
_MOST_PREEMPTIONS = 200  # a chain of preemptions always ends, because priorities fall; this guards against a bug here


class OpenLanding(Value):
    """A displaced pod for which the scheduler found nodes, of which the scenario must choose one. `ways` has the
    searches that choose each node; empty if the scheduler checks every node."""

    each: Displaced
    ways: Mapping[str, Way]

    @property
    def nodes(self) -> Sequence[str]:
        """The nodes that the pod may take, that of the main scenario first."""
        if self.ways:
            return tuple(self.ways)
        result = self.each.result
        assert result is not None, "the scheduler has run a cycle for this pod"
        if result.node is None:
            assert result.preemption is not None, "if no node fits, the cycle has found pods to preempt"
            return (result.preemption.node,)
        return _BestNodes(result)


class _BestNodes(Sequence[str]):
    """The nodes with the highest score: first the one that the scheduler's own rule chooses, then the others by name.

    Sorted only when a node after the first is read, which a plan seldom does.
    """

    def __init__(self, result: CycleResult) -> None:
        self._result = result

    def __len__(self) -> int:
        return len(self._result.best_rows)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        first = self._result.node or ""
        return first if index == 0 else (first, *(name for name in self._result.best if name != first))[index]


@dataclass(slots=True)
class Scenario:
    """One scenario, stopped between two steps. New scenarios that divide from it get copies of its eviction rounds
    and its queue, and share all other values."""

    scheduler: Scheduler
    world: Snapshot
    rounds: EvictionRounds
    queue: PlacementQueue = field(default_factory=PlacementQueue)
    jobs: JobsAfter | None = None  # the effect of the evictions on the Jobs; None as long as no Job's pod was evicted
    searches: tuple[Likely, ...] = ()  # the scheduler's possible searches; empty: it checks every node
    landing: OpenLanding | None = None  # the nodes for the pod that was tried last, until one is chosen
    choices: Sequence[str] = ()  # the options of the next choice, see `_find_choices`
    preemptions: int = 0
    reports_scores: bool = True  # keep the scores of the chosen and the next best node
    names_left_out: bool = True  # keep the names of the nodes for which no scenario is simulated
    preempts: bool = True  # search for pods to evict for one that fits nowhere
    counts_any_start: bool = False  # call `shares_of_any_start` for each pod
    is_main: bool = True  # always takes the first option of a choice
    is_over: bool = False
    is_cut: bool = False  # scenarios were left out, so nodes may be missing from the results

    @property
    def displaced(self) -> dict[str, Displaced]:
        """By the key of the evicted pod."""
        return self.queue.displaced

    # ---- one step ----

    def go_on(self) -> None:
        """Runs until the next step needs a choice (`choices`), or until the end (`is_over`)."""
        while not self.is_over:
            self.choices = self._find_choices()
            if self.choices:
                return
            if self.queue.line:
                self._try(self.displaced[self.queue.line[0]])
            elif self.queue.pool:
                self.queue.take(self.queue.pool[0])  # all pods of the pool are interchangeable
            elif self.rounds.remaining:
                self._evict()
            else:
                self._end_round()

    def _find_choices(self) -> Sequence[str]:
        """The options of the next choice, that of the main scenario first: nodes for the pod that was just
        scheduled, or keys of the pods that may be next (one of each kind in the pool), or the next round. Empty if
        there is nothing to choose."""
        if self.landing is not None:
            return self.landing.nodes
        if self.queue.line or not self.queue.pool:
            return ()
        choices = (*self.queue.open_kinds, *((_NEXT_ROUND,) if self.rounds.allows_another else ()))
        return choices if len(choices) > 1 else ()

    @property
    def question(self) -> str:
        """Identifies the next choice, so that a seeded random number can be computed from it."""
        if self.landing is not None:
            pod = self.landing.each.pod
            return f"{pod.node_name} {pod.key} {len(self.displaced)}"
        return " ".join(self.queue.pool)

    def divided(self, ways: int, turn: int) -> list[Scenario]:
        """At most `ways` scenarios, each with another option. `turn` decides which options are left out."""
        choices, searches, number = self.choices, self.searches, len(self.choices)
        first = turn % number if ways < number else 0
        picked = [(first + place * number // ways) % number for place in range(min(ways, number))]
        left_out = self._left_out(first, picked)
        parts = [self, *(self._copy() for _ in picked[1:])]
        for order, (part, place) in enumerate(zip(parts, picked, strict=True)):
            part.searches = searches[order :: len(parts)]
            part._choose(choices[place], left_out if part is self else ())
            part.is_cut = part.is_cut or (ways < number and (not searches or are_few(searches)))
        return parts

    def _left_out(self, first: int, picked: Sequence[int]) -> Sequence[str]:
        """The options that no scenario takes, from position `first` on and around the end. `picked` has the
        positions of the taken ones. Empty unless `names_left_out`."""
        if not self.names_left_out:
            return ()
        order = (place % len(self.choices) for place in range(first, first + len(self.choices)))
        return [self.choices[place] for place in order if place not in picked]

    def _choose(self, choice: str, left_out: Sequence[str]) -> None:
        landing, self.landing = self.landing, None
        if landing is not None and landing.ways:
            self._follow(landing.each, landing.ways[choice])
        elif landing is not None:
            self._land(landing.each, choice, left_out)
        elif choice == _NEXT_ROUND:
            self.queue.postpone()
        else:
            self.queue.take(choice)

    def _copy(self) -> Scenario:
        return replace(self, is_main=False, rounds=self.rounds.copy(), queue=self.queue.copy())

    # ---- evictions ----

    def _evict(self) -> None:
        pod = self.rounds.evict_next()
        if pod is None:
            return
        self.world = self.world.with_pod_terminating(pod.key)
        if recreation_of(pod) is Recreation.AT_ONCE:
            self.queue.add_next(pod)

    def _end_round(self) -> None:
        """Removes the evicted pods, and adds the replacements that appear then. Begins the next round, or ends the
        scenario if this one moved no pod."""
        rounds, queue = self.rounds, self.queue
        rounds.refill()
        if rounds.ending or queue.postponed:
            self.world = self.world.without_pods([pod.key for pod in rounds.ending])
            queue.begin_round(rounds.begin_next())
        elif rounds.open_slow():
            return
        elif rounds.at_last:
            late, rounds.at_last = rounds.at_last, ()
            self.jobs = jobs = after_evictions(self.world.objects.jobs, late)
            queue.add_pool(pod for pod in late if pod.key not in jobs.lost)
        else:
            self.is_over = True

    # ---- cycles ----

    def _try(self, each: Displaced) -> None:
        """Runs one cycle for this pod, the first in the line. If it finds nodes, the scenario must choose one."""
        result, unknown, found = None, "", {}
        try:
            found = self._search(each)
            result = next(iter(found.values())).result
            unknown = result.unknown or result.error
        except NoProfileError:
            unknown = (
                f"is scheduled by {each.pod.spec.scheduler_name}, whose profile is unknown (set --scheduler-config)"
            )
        tried = replace_value(
            each, result=result, unknown=unknown, is_after_cut=self.is_cut, any_start=self._any_start(each, result)
        )
        self.queue.tried(tried)
        if any(found) or (result is not None and (result.node is not None or result.preemption is not None)):
            self.landing = OpenLanding(tried, found if self.searches else {})
        elif each.waited:
            self.displaced[each.pod.key] = replace_value(tried, result=result and result.without_evidence())
            self.queue.drop_alike(each)

    def _search(self, each: Displaced) -> dict[str, Way]:
        """Runs a cycle with each possible search, grouped by the node that it chooses; a single one if the scheduler
        checks every node."""
        if not self.searches:
            result = self.scheduler.schedule(self.world, each.replacement, preempts=self.preempts)
            return {"": Way("", result, (), ())}
        self.searches = after_others(self.searches, each.pod.key, _SECONDS_BEFORE[recreation_of(each.pod)])
        searches = tuple(dict.fromkeys(likely.search for likely in self.searches))
        made = self.scheduler.schedule_each(self.world, each.replacement, searches, preempts=self.preempts)
        results = dict(zip(searches, made, strict=True))
        found = ways(each.pod.key, self.searches, [results[likely.search] for likely in self.searches])
        if set(found) == {""}:
            self.searches = found[""].searches
        return found

    def _any_start(self, each: Displaced, result: CycleResult | None) -> Shares:
        """The probability of each node if the search may start anywhere; empty unless this is the main scenario and
        `counts_any_start`."""
        if not (self.is_main and self.counts_any_start and result and result.sample):
            return ()
        every = self.scheduler.schedule(self.world, each.replacement)
        is_shuffled = self.scheduler.kube_version.shuffles_first_nodes
        return shares_of_any_start(every, result.sample.looked_at, is_order_known=not is_shuffled)

    def _follow(self, each: Displaced, way: Way) -> None:
        """Goes on with the searches in `way`, which all place the pod on one node, or all on none."""
        self.searches = way.searches
        self.displaced[each.pod.key] = each = replace_value(each, result=way.result, shares=way.shares)
        if way.node:
            self._land(each, way.node)

    def _land(self, each: Displaced, node: str, left_out: Sequence[str] = ()) -> None:
        assert each.result is not None, "the scheduler has run a cycle for this pod"
        victims = self._make_room(each.result)
        if each.result.node is None:
            # `Scheduler.place` also reserves volumes for the pod's claims; after a preemption, only a later cycle
            # chooses these volumes.
            self.world = self.world.with_pod_placed(each.replacement, node)
        else:
            taken = each.result if node == each.result.node else replace_value(each.result, node=node)
            self.world = self.scheduler.place(self.world, taken)
        scores = _scores(each.result) if self.is_main and self.reports_scores else {}
        self.displaced[each.pod.key] = replace_value(
            each,
            replacement=each.replacement.on_node(node),
            landed=True,
            choices=(node, *left_out),
            result=each.result.without_evidence(),
            **scores,
        )
        if not victims and not each.waited:
            self.rounds.healthy = (*self.rounds.healthy, each.pod)

    def _make_room(self, result: CycleResult) -> list[Pod]:
        """Removes the pods that the placed pod preempts; their replacements join the line."""
        if result.node is not None or result.preemption is None or self.preemptions >= _MOST_PREEMPTIONS:
            return []
        keys = set(result.preemption.victims)
        victims = [pod for pod in self.world.pods_on(result.preemption.node) if pod.key in keys]
        self.preemptions += 1
        for victim in victims:
            self.world = self.world.without_pod(victim.key)
            self.queue.add_victim(victim, self.preemptions)
        return victims

    # ---- alike ----

    @property
    def likeness(self) -> Hashable:
        """Equal for scenarios that go on in the same way: the same kinds of pods are on the same nodes and wait in
        the same order."""
        return (self.queue.likeness, self.rounds.likeness)

    @property
    def most_ways(self) -> int:
        """The most scenarios into which this one can divide: each needs at least one of its searches. If the
        scheduler checks every node, the number of options."""
        return len(self.searches) if self.searches else len(self.choices)

    @property
    def weight(self) -> float:
        """The probability of this scenario; 1 if it is unknown."""
        return weight_of(self.searches) if self.searches else 1.0

    def absorb(self, other: Scenario) -> None:
        """Adds the results and searches of an equivalent scenario."""
        self.queue.absorb(other.queue, (self.weight, other.weight), is_theirs=other.is_main)
        self.is_cut, self.is_main = self.is_cut or other.is_cut, self.is_main or other.is_main
        self.searches = (*self.searches, *other.searches)


def _scores(result: CycleResult) -> dict[str, Any]:
    return {"score": result.highest_total, "runner_up": result.runner_up}


def follow(first: Scenario, most: int, draw: Draw = NOTHING_DRAWN) -> list[Scenario]:
    """Simulates at most `most` scenarios that can follow from `first`, each to its end, the main scenario first. If
    more are possible, `draw` chooses."""
    going: list[Scenario] = [first]
    over: list[Scenario] = []
    while going:
        for scenario in going:
            scenario.go_on()
        over += [scenario for scenario in going if scenario.is_over]
        going = _divided([scenario for scenario in going if not scenario.is_over], most - len(over), draw)
    over.sort(key=lambda scenario: not scenario.is_main)
    return over if len(over) < 2 else _merged(over)


def _divided(scenarios: Sequence[Scenario], most: int, draw: Draw) -> list[Scenario]:
    spare = most - len(scenarios)
    parts: list[Scenario] = []
    for turn, scenario in enumerate(scenarios):
        ways = min(len(scenario.choices), 1 + max(0, spare), scenario.most_ways)
        spare -= ways - 1
        parts += scenario.divided(ways, turn + draw.among(len(scenario.choices), scenario.question))
    return parts if len(parts) < 2 else _merged(parts)


def _merged(scenarios: Sequence[Scenario]) -> list[Scenario]:
    alike: dict[Hashable, Scenario] = {}
    for scenario in scenarios:
        known = alike.setdefault(scenario.likeness, scenario)
        if known is not scenario:
            known.absorb(scenario)
    return list(alike.values())
