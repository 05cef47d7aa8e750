"""Estimates where in its node list kube-scheduler will start its next search. The estimate uses the nodes to which the
scheduler bound earlier pods.

If the scheduler checks only a part of the nodes, the start of its search decides which node a pod gets. Every cycle
moves the start by a number of nodes that can be computed. So each binding shows which of the possible starts predicted
the pod's node, and a Bayes filter updates the probabilities of the starts. Besides its start, a search also has a
number of workers and an order of nodes. The followed searches are the combinations of start, workers and order that the
filter considers. `doubt` is the probability that none of them is right, because the scheduler may have restarted, may
use an unknown order of nodes, or may have run cycles that were not observed.

The binding of an unknown pod moves the start too. The filter assumes that such a binding moves the start by as many
nodes as one of the last observed cycles, because most cycles of a cluster check about the same number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.learning.expectation import Expectation, Weighed
from scheduler_core.model.pod import Pod
from scheduler_core.sampling import Search
from scheduler_core.simulation.scenario_parts.deviations import AHEAD, STEPS, moves_start
from scheduler_core.simulation.searches import Likely, in_known_orders, possible_searches
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

# The most searches in an estimate. Each binding costs about 0.2 ms of computing time for each search.
MOST_FOLLOWED: Final = 1000
# The number of further searches with evenly spaced starts, for predictions if no search in the estimate is right.
_SPREAD: Final = 160
# The probability, at each binding, that no search of the estimate is right any more: the scheduler restarted, a cycle
# was not observed, or a cycle moved the start by more nodes than any of `STEPS`.
_LOST: Final = 0.002
# The part of `doubt` that new starts get at each binding. Without these, the estimate could never recover.
_TRIED_AGAIN: Final = 0.05
# The least likely searches are dropped if their probabilities together are less than this.
_FORGOTTEN: Final = 0.002
# The greatest length of `strides`. An unknown cycle probably moves the start by one of these numbers of nodes.
_MOST_STRIDES: Final = 32
# The probability that an unknown cycle moves the start by any number of nodes, unlike the observed cycles.
_UNLIKE: Final = 0.1
# After this number of unknown cycles in a row, almost nothing is known of the start any more.
MOST_UNSEEN: Final = 50
_Kind = tuple[int, int]  # number of workers, order of nodes
_Weights = NDArray[np.float64]


class SearchEstimate(Value, kw_only=True):
    """The possible searches that the scheduler may run next, with their probabilities. A search has a start in the node
    list, a number of workers and an order of the nodes. The value is frozen: each binding gives a new estimate.

    `followed` has these searches with their probabilities (weights). `doubt` is the probability that none of them is
    right; all these probabilities add up to 1. `bindings` is the number of observed bindings. `strides` says by how
    many nodes each of the last observed cycles moved the start. `others` is how many pods per second are bound outside
    of drains (0 if this number is unknown).
    """

    followed: tuple[Likely, ...] = ()
    doubt: float = 1.0
    bindings: int = 0
    strides: tuple[int, ...] = ()
    others: float = 0.0

    @classmethod
    def unknown(cls, snapshot: Snapshot, scheduler: Scheduler) -> SearchEstimate:
        """Returns the estimate before any observation, in which every start in the node list is equally likely. If the
        scheduler checks every node, the estimate never changes, because there is nothing to learn."""
        grid = in_known_orders(snapshot, scheduler, MOST_FOLLOWED)
        return cls(followed=tuple(_scaled(grid, 0.5)), doubt=0.5) if grid else cls()

    def expect(self, snapshot: Snapshot, scheduler: Scheduler, pod: Pod) -> Expectation:
        """Predicts the result of this pod's cycle. `snapshot` is the cluster right before the cycle, so the pod is not
        on a node. Raises NoProfileError if the pod belongs to another scheduler, because the pod's binding then says
        nothing about this scheduler's searches."""
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

    def after_binding(self, expected: Expectation, node_name: str) -> SearchEstimate:
        """Returns the estimate after the pod was bound to this node. `expected` is the result of `expect` before the
        binding."""
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

    def after_unknown_binding(self, snapshot: Snapshot) -> SearchEstimate:
        """Returns the estimate after a binding of an unknown pod. The cycle of this pod moved the start of the
        scheduler's search by an unknown number of nodes. The estimate assumes that this number is probably one of
        `strides`, which says by how many nodes the last observed cycles moved the start. Any other number is possible,
        but less likely."""
        nodes, found = len(snapshot.nodes), dict[_Kind, _Weights]()
        if not self.followed or not nodes:
            return self
        for each in self.followed:
            _of(found, each.search, nodes)[each.search.start % nodes] += each.weight
        kept = _likeliest({kind: _after_stride(line, self.strides) for kind, line in found.items()}, 1.0)
        return replace_value(self, followed=kept, doubt=1.0 - sum(each.weight for each in kept))

    def starts(self) -> tuple[tuple[int, float], ...]:
        """Returns pairs of a position in the scheduler's node list and the probability that the next search starts
        there, the most likely position first. The probabilities add up to 1 minus `doubt` (the probability that no
        search in `followed` is right)."""
        weights: dict[int, float] = {}
        for each in self.followed:
            weights[each.search.start] = weights.get(each.search.start, 0.0) + each.weight
        return tuple(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])))

    def searches(self, snapshot: Snapshot, scheduler: Scheduler, most: int) -> tuple[Likely, ...]:
        """Returns exactly `most` searches, with which a forecast can simulate a drain. All of them have the same
        weight. Instead of a higher weight, a likely search appears several times in the result. An unlikely search may
        be missing. Returns no searches if the scheduler checks every node."""
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
    """Returns the probability of each position in the node list as the start of the next search: one array for each
    pair of a number of workers and an order of nodes. `followed` has each possible search with its simulated cycle,
    which says where the next search starts."""
    exact, deviating = dict[_Kind, _Weights](), dict[_Kind, _Weights]()
    for (likely, result), in_order, ahead in zip(followed, weighed.in_order, weighed.ahead, strict=True):
        start = (likely.search.start if result.next_start is None else result.next_start) % nodes
        moved = ahead * moves_start(result)
        _of(exact, likely.search, nodes)[start] += in_order + ahead - moved
        _of(deviating, likely.search, nodes)[start] += moved
    return {kind: line + _deviated(deviating[kind]) for kind, line in exact.items()}


def _stride(expected: Expectation, weights: _Weights) -> int:
    """Returns by how many nodes this cycle moved the start of the scheduler's search, assuming that the most likely
    search is the right one."""
    if not len(weights):
        return 0
    likely, result = expected.followed[int(weights.argmax())]
    return 0 if result.next_start is None else (result.next_start - likely.search.start) % expected.nodes


def _after_stride(line: _Weights, strides: Sequence[int]) -> _Weights:
    """Returns the probability of each possible start (position in the node list) after one more cycle. `line` has the
    probabilities before this cycle. The cycle probably moved the start by one of `strides` (numbers of nodes). Any
    other number is possible, but less likely."""
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
    """Moves a part of each start's probability to neighbouring positions in the node list, because the real search may
    start a few nodes before or after the computed start. `STEPS` maps each such difference in nodes to its
    probability."""
    moved: _Weights = sum((share * np.roll(line, step) for step, share in STEPS.items()), np.zeros(len(line)))
    return moved


def _likeliest(found: Mapping[_Kind, _Weights], share: float) -> tuple[Likely, ...]:
    """Returns the most likely searches, with their probabilities multiplied by `share`. Leaves out the least likely
    searches, whose probabilities together are almost zero."""
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
