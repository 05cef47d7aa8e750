"""Follows the possible scenarios of one drain, from the first eviction until no pod moves.

Evictions are requested one after another. If a controller creates a replacement at once, the scheduler places it before
the next eviction: on a real cluster an eviction takes a tenth of a second, and a replacement gets its node in a tenth
of that time. The replacement of a StatefulSet's pod appears when the old pod is gone. The replacement of a Job's pod
appears still later.

A scenario is one possible sequence of events. It divides into several scenarios if several nodes have the same score,
because the scheduler may take any of these nodes. The scenario also divides when several pods end, because any of
them may end first. Two scenarios that have become equivalent are joined again; replicas of one owner are
interchangeable. `most` limits the number of scenarios. If scenarios are left out because of this limit, pods placed
later are marked, because a node may be missing from their results. `landings.py` combines the results of the scenarios.

If the scheduler checks only a part of the nodes, a scenario also has the searches of the node list that lead to it,
with their probabilities (`searches.py`). The scenario divides where these searches find different nodes.
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
    """A displaced pod for which the scheduler found one or more nodes. The scenario must still choose one of these
    nodes. `ways` maps each node to the possible searches that choose it. `ways` is empty if the scheduler checks every
    node."""

    each: Displaced
    ways: Mapping[str, Way]

    @property
    def nodes(self) -> Sequence[str]:
        """The nodes that the pod may take. The node that the pod takes in the main scenario comes first."""
        if self.ways:
            return tuple(self.ways)
        result = self.each.result
        assert result is not None, "the scheduler has run a cycle for this pod"
        if result.node is None:
            assert result.preemption is not None, "if no node fits, the cycle has found pods to preempt"
            return (result.preemption.node,)
        return _BestNodes(result)


class _BestNodes(Sequence[str]):
    """The nodes with the highest total score. The first node is the one that the scheduler's own rule chooses. The
    other nodes follow, sorted by name.

    To save time, the names are sorted only when a caller reads a node after the first. A plan seldom reads such a node.
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
    """One scenario of a drain (a possible sequence of events), stopped between two steps. When a scenario divides, the
    new scenarios get copies of its eviction rounds and its queue of displaced pods, and share all other values."""

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
    counts_any_start: bool = False  # call `shares_of_any_start` for each pod
    is_main: bool = True  # always takes the first option of a choice
    is_over: bool = False
    is_cut: bool = False  # scenarios were left out, so nodes may be missing from the results

    @property
    def displaced(self) -> dict[str, Displaced]:
        """Every displaced pod, by the key of the evicted pod."""
        return self.queue.displaced

    # ---- one step ----

    def go_on(self) -> None:
        """Runs the scenario until its next step needs a choice (`choices` has the options), or until it has ended
        (`is_over`)."""
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
        """Returns the options of the next choice: the nodes for the pod that was just scheduled, or the keys of the
        pods that the scheduler may try next (one pod of each kind in the pool), or the next round of evictions. The
        option of the main scenario comes first. Returns nothing if there is nothing to choose."""
        if self.landing is not None:
            return self.landing.nodes
        if self.queue.line or not self.queue.pool:
            return ()
        choices = (*self.queue.open_kinds, *((_NEXT_ROUND,) if self.rounds.allows_another else ()))
        return choices if len(choices) > 1 else ()

    @property
    def question(self) -> str:
        """A text that identifies the next choice, so that a seeded random number can be computed from it."""
        if self.landing is not None:
            pod = self.landing.each.pod
            return f"{pod.node_name} {pod.key} {len(self.displaced)}"
        return " ".join(self.queue.pool)

    def divided(self, ways: int, turn: int) -> list[Scenario]:
        """Divides this scenario into at most `ways` scenarios, each with another option of the next choice. If there
        are more options than `ways`, the number `turn` decides which options are left out."""
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
        """Returns the options of the next choice (`choices`) that no scenario takes. `picked` has the positions of the
        taken options in `choices`. The options from position `first` on come first, and then the options before
        `first`. Returns nothing if `names_left_out` is False."""
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
        """Ends the round of evictions: removes the evicted pods, and adds the replacements that appear when these pods
        are gone. Begins the next round, or ends the scenario if this round moved no pod."""
        rounds, queue = self.rounds, self.queue
        rounds.refill()
        if rounds.ending or queue.postponed:
            self.world = self.world.without_pods([pod.key for pod in rounds.ending])
            queue.begin_round(rounds.begin_next())
        elif rounds.at_last:
            late, rounds.at_last = rounds.at_last, ()
            self.jobs = jobs = after_evictions(self.world.objects.jobs, late)
            queue.add_pool(pod for pod in late if pod.key not in jobs.lost)
        else:
            self.is_over = True

    # ---- cycles ----

    def _try(self, each: Displaced) -> None:
        """Runs one scheduling cycle for this pod, the first in the line. If the cycle finds nodes, the scenario must
        then choose one of these nodes."""
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
        """Runs a scheduling cycle for the pod with each possible search of the scheduler. Returns the searches, grouped
        by the node that they choose. If the scheduler checks every node, there is only one cycle and one group."""
        if not self.searches:
            result = self.scheduler.schedule(self.world, each.replacement)
            return {"": Way("", result, (), ())}
        self.searches = after_others(self.searches, each.pod.key, _SECONDS_BEFORE[recreation_of(each.pod)])
        searches = tuple(dict.fromkeys(likely.search for likely in self.searches))
        results = dict(zip(searches, self.scheduler.schedule_each(self.world, each.replacement, searches), strict=True))
        found = ways(each.pod.key, self.searches, [results[likely.search] for likely in self.searches])
        if set(found) == {""}:
            self.searches = found[""].searches
        return found

    def _any_start(self, each: Displaced, result: CycleResult | None) -> Shares:
        """Returns the probability of each node if the scheduler's search may start at any position of the node list.
        The result is empty if this is not the main scenario, or if `counts_any_start` is False."""
        if not (self.is_main and self.counts_any_start and result and result.sample):
            return ()
        every = self.scheduler.schedule(self.world, each.replacement)
        is_shuffled = self.scheduler.kube_version.shuffles_first_nodes
        return shares_of_any_start(every, result.sample.looked_at, is_order_known=not is_shuffled)

    def _follow(self, each: Displaced, way: Way) -> None:
        """Continues the scenario with the searches in `way`. All of them have the same result for the pod: one node, on
        which this method places the pod, or no node."""
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
        """Removes the pods that the placed pod preempts, and returns them. The replacements of the removed pods are
        added to the line of pods that the scheduler tries next."""
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
        """A key that is equal for two scenarios if they continue in the same way: the same kinds of pods are on the
        same nodes, and the same kinds of pods wait in the same order."""
        return (self.queue.likeness, self.rounds.likeness)

    @property
    def most_ways(self) -> int:
        """The largest number of scenarios into which this scenario can divide: the number of possible searches of the
        node list, because each new scenario needs at least one of them. If the scheduler checks every node, there are
        no such searches. The result is then the number of options in `choices`."""
        return len(self.searches) if self.searches else len(self.choices)

    @property
    def weight(self) -> float:
        """The probability of this scenario, or 1 if the probability is unknown."""
        return weight_of(self.searches) if self.searches else 1.0

    def absorb(self, other: Scenario) -> None:
        """Adds the results and the possible searches of an equivalent scenario to this scenario."""
        self.queue.absorb(other.queue, (self.weight, other.weight), is_theirs=other.is_main)
        self.is_cut, self.is_main = self.is_cut or other.is_cut, self.is_main or other.is_main
        self.searches = (*self.searches, *other.searches)


def _scores(result: CycleResult) -> dict[str, Any]:
    return {"score": result.highest_total, "runner_up": result.runner_up}


def follow(first: Scenario, most: int, draw: Draw = NOTHING_DRAWN) -> list[Scenario]:
    """Simulates the scenarios that can follow from the unfinished scenario `first`, each to its end, and returns at
    most `most` of them. The main scenario, in which the scheduler's own rule breaks each tie, is the first in the
    result. If more than `most` scenarios are possible, `draw` chooses which scenarios are simulated."""
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
