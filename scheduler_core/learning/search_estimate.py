"""Estimates from observed bindings where in its node list kube-scheduler starts its next search.

If the scheduler checks only a part of the nodes, the start decides which node a pod gets, and every cycle moves it by a
number of nodes that can be computed. So each binding shows which starts predicted the pod's node, and a Bayes filter
updates their probabilities. The followed searches are the combinations of start, number of workers and order of nodes
that the filter considers. `doubt` is the probability that none of them is right: the scheduler may have restarted, use
an unknown order, or have run cycles that nobody observed.

The binding of an unknown pod moves the start too: probably by as many nodes as one of the last observed cycles, because
most cycles of a cluster check about the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.arguments import checked
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.learning.expectation import Expectation, Weighed
from scheduler_core.model.pod import Pod
from scheduler_core.sampling import Search
from scheduler_core.simulation.scenario_parts.deviations import AHEAD, STEPS, moves_start
from scheduler_core.simulation.searches import Likely, in_known_orders, possible_searches
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

# The most searches in an estimate. Each binding costs about 0.2 ms for each search.
MOST_FOLLOWED: Final = 1000
# Further searches with evenly spaced starts, for predictions if no search in the estimate is right.
_SPREAD: Final = 160
# The probability, at each binding, that no search of the estimate is right any more: the scheduler restarted, a cycle
# was not observed, or it moved the start by more nodes than any of `STEPS`.
_LOST: Final = 0.002
# The part of `doubt` that new starts get at each binding. Without them, the estimate could never recover.
_TRIED_AGAIN: Final = 0.05
# The least likely searches are dropped if their probabilities together are less than this.
_FORGOTTEN: Final = 0.002
# The greatest length of `strides`.
_MOST_STRIDES: Final = 32
# The probability that an unknown cycle moves the start by any number of nodes, unlike the observed cycles.
_UNLIKE: Final = 0.1
# After so many unknown cycles in a row, almost nothing is known of the start.
MOST_UNSEEN: Final = 50
_Kind = tuple[int, int]  # number of workers, order of nodes
_Weights = NDArray[np.float64]


class SearchEstimate(Value, kw_only=True):
    """The possible searches that the scheduler may run next, with their probabilities. Each binding gives a new
    estimate.

    `followed` has these searches with their weights and `doubt` the probability that none is right; together they add
    up to 1. `bindings` counts the observed bindings. `strides` says by how many nodes each of the last observed cycles
    moved the start. `others` is how many pods per second are bound outside of drains; 0 if unknown.
    """

    followed: tuple[Likely, ...] = ()
    doubt: float = 1.0
    bindings: int = 0
    strides: tuple[int, ...] = ()
    others: float = 0.0

    def __repr__(self) -> str:
        return f"<SearchEstimate bindings={self.bindings} followed={len(self.followed)} doubt={self.doubt:.2f}>"

    @classmethod
    @checked
    def unknown(cls, snapshot: Snapshot, scheduler: Scheduler) -> SearchEstimate:
        """Before any observation: every start is equally likely. If the scheduler checks every node, the estimate
        never changes, because there is nothing to learn."""
        grid = in_known_orders(snapshot, scheduler, MOST_FOLLOWED)
        return cls(followed=tuple(_scaled(grid, 0.5)), doubt=0.5) if grid else cls()

    @checked
    def expect(self, snapshot: Snapshot, scheduler: Scheduler, pod: Pod) -> Expectation:
        """Predicts this pod's cycle. `snapshot` is the cluster right before it, so the pod is on no node. Raises
        NoProfileError for a pod of another scheduler, whose binding says nothing about this one's searches."""
        spread = possible_searches(snapshot, scheduler, _SPREAD)
        if not spread:
            return Expectation.of_one(scheduler.schedule(snapshot, pod))
        searches = [each.search for each in (*self.followed, *spread)]
        results = scheduler.schedule_each(snapshot, pod, searches)
        mine = len(self.followed)
        return Expectation(
            followed=tuple(zip(self.followed, results[:mine], strict=True)),
            spread=tuple(zip(spread, results[mine:], strict=True)),
            doubt=self.doubt,
            born=tuple(in_known_orders(snapshot, scheduler, MOST_FOLLOWED, self.bindings)),
            nodes=len(snapshot.nodes),
        )

    @checked
    def after_binding(self, expected: Expectation, node_name: str) -> SearchEstimate:
        """The estimate after the pod was bound to this node. `expected` is what `expect` returned before."""
        if not expected.spread:
            return self
        weighed = expected.weighed(node_name)
        found = _moved(expected.followed, weighed, expected.nodes)
        doubt, lost = weighed.doubt + _LOST * (1.0 - weighed.doubt), 1.0 - _LOST
        born = doubt * _TRIED_AGAIN
        for each in expected.born:
            _of(found, each.search, expected.nodes)[each.search.start % expected.nodes] += born * each.weight / lost
        kept = _likeliest(found, lost)
        return replace_value(
            self,
            followed=kept,
            doubt=1.0 - sum(each.weight for each in kept),
            bindings=self.bindings + 1,
            strides=(*self.strides, _stride(expected, weighed.in_order + weighed.ahead))[-_MOST_STRIDES:],
        )

    @checked
    def after_unknown_binding(self, snapshot: Snapshot) -> SearchEstimate:
        """The estimate after a binding of an unknown pod, which moved the start by an unknown number of nodes:
        probably one of `strides`, less likely any other."""
        nodes, found = len(snapshot.nodes), dict[_Kind, _Weights]()
        if not self.followed or not nodes:
            return self
        for each in self.followed:
            _of(found, each.search, nodes)[each.search.start % nodes] += each.weight
        kept = _likeliest({kind: _after_stride(line, self.strides) for kind, line in found.items()}, 1.0)
        return replace_value(self, followed=kept, doubt=1.0 - sum(each.weight for each in kept))

    def starts(self) -> tuple[tuple[int, float], ...]:
        """Positions in the node list with the probability that the next search starts there, the most likely first.
        They add up to 1 minus `doubt`."""
        weights: dict[int, float] = {}
        for each in self.followed:
            weights[each.search.start] = weights.get(each.search.start, 0.0) + each.weight
        return tuple(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])))

    @checked
    def searches(self, snapshot: Snapshot, scheduler: Scheduler, most: int) -> tuple[Likely, ...]:
        """Exactly `most` searches, with which a forecast can simulate a drain. All have the same weight: a likely
        search appears several times, an unlikely one may be missing. Empty if the scheduler checks every node."""
        spread = possible_searches(snapshot, scheduler, most)
        if not spread:
            return ()
        every = (*self.followed, *_scaled(spread, 1.0 - sum(each.weight for each in self.followed)))
        ends = np.cumsum([each.weight for each in every])
        places = np.searchsorted(ends, (np.arange(most) + 0.5) / most * ends[-1])
        return tuple(
            Likely(
                search=every[place].search,
                weight=1.0 / most,
                number=number,
                lost=spread[number * 7 % len(spread)].search,
                others=self.others,
                strides=self.strides,
            )
            for number, place in enumerate(places, start=1)
        )


def _scaled(searches: Iterable[Likely], factor: float) -> Iterable[Likely]:
    return (replace(each, weight=each.weight * factor) for each in searches)


def _moved(followed: Sequence[tuple[Likely, CycleResult]], weighed: Weighed, nodes: int) -> dict[_Kind, _Weights]:
    """Per number of workers and order of nodes, the probability of each position as the start of the next search.
    The simulated cycle of each of `followed` says where the next search starts."""
    exact, deviating = dict[_Kind, _Weights](), dict[_Kind, _Weights]()
    for (likely, result), in_order, ahead in zip(followed, weighed.in_order, weighed.ahead, strict=True):
        start = (likely.search.start if result.next_start is None else result.next_start) % nodes
        moved = ahead * moves_start(result)
        _of(exact, likely.search, nodes)[start] += in_order + ahead - moved
        _of(deviating, likely.search, nodes)[start] += moved
    return {kind: line + _deviated(deviating[kind]) for kind, line in exact.items()}


def _stride(expected: Expectation, weights: _Weights) -> int:
    """By how many nodes this cycle moved the start, if the most likely search is the right one."""
    if not len(weights):
        return 0
    likely, result = expected.followed[int(weights.argmax())]
    return 0 if result.next_start is None else (result.next_start - likely.search.start) % expected.nodes


def _after_stride(line: _Weights, strides: Sequence[int]) -> _Weights:
    """`line` after one more unknown cycle: it moved the start probably by one of `strides`, less likely by any other
    number."""
    anywhere = np.full(len(line), line.sum() / len(line))
    if not strides:
        return anywhere
    moved: _Weights = sum((np.roll(line, stride) for stride in strides), np.zeros(len(line))) / len(strides)
    near = moved * (1.0 - AHEAD) + _deviated(moved) * AHEAD
    return near * (1.0 - _UNLIKE) + anywhere * _UNLIKE


def _of(found: dict[_Kind, _Weights], search: Search, nodes: int) -> _Weights:
    kind = (search.workers, search.order)
    if kind not in found:
        found[kind] = np.zeros(nodes)
    return found[kind]


def _deviated(line: _Weights) -> _Weights:
    """Moves a part of each start's probability to its neighbours by `STEPS` (difference in nodes -> probability),
    because the real start may be a few nodes off the computed one."""
    moved: _Weights = sum((share * np.roll(line, step) for step, share in STEPS.items()), np.zeros(len(line)))
    return moved


def _likeliest(found: Mapping[_Kind, _Weights], share: float) -> tuple[Likely, ...]:
    """The most likely searches, with their probabilities multiplied by `share`. Left out are the least likely ones,
    together almost zero."""
    if not found:
        return ()
    kinds = list(found)
    table = np.stack([found[kind] for kind in kinds])
    order = np.argsort(-table, axis=None, kind="stable")[:MOST_FOLLOWED]
    sums = np.cumsum(table.ravel()[order])
    enough = int(np.searchsorted(sums, (1.0 - _FORGOTTEN) * table.sum())) + 1
    rows, starts = np.unravel_index(order[:enough], table.shape)
    return tuple(
        Likely(Search(int(start), *kinds[row]), float(table[row, start]) * share)
        for row, start in zip(rows, starts, strict=True)
        if table[row, start] > 0
    )
