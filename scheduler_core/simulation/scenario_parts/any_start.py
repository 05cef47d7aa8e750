"""Computes on which nodes one pod may be placed if nothing is known of the scheduler's search of the node list: neither
its start nor the order of nodes.

A forecast simulates the whole drain only with some of the possible searches. Other searches may choose nodes that are
then missing from the forecast. For example, if the scheduler checks a tenth of 5,000 nodes, searches with different
starts choose about thirty different nodes. But for a single pod, all possible searches can be computed. `weighed`
combines their result with the simulated searches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cycle_result import CycleResult
from scheduler_core.simulation.searches import Shares

_NEGLIGIBLE: Final = 1e-4
# The possible weights of `prior` in `weighed`, as a number of simulated searches.
_WORTH: Final = (0.5, 2.0, 8.0, 32.0, 128.0, 512.0, 4096.0)

_Weights = NDArray[np.float64]


def shares_of_any_start(result: CycleResult, wanted: int, *, is_order_known: bool) -> Shares:
    """Returns the probability of each node if the scheduler's search may start at any position of the node list, and
    stops after `wanted` nodes that fit. `result` is the result of a cycle that checked every node. If
    `is_order_known` is false, the computed order of nodes and a random order have probability one half each. Nodes of
    equal score get equal probabilities."""
    if result.table is None:
        return ((result.best, 1.0),) if result.node else ()
    columns = result.table.nodes.columns
    totals = np.zeros(len(columns), dtype=np.int64)
    totals[result.table.nodes.rows] = result.table.total
    rows = columns.in_tree_order(result.table.nodes.rows)
    by_age, random = _by_age(totals[rows], wanted), _by_rank(totals[rows], wanted)
    mixed = by_age if is_order_known else (by_age + random) / 2.0
    return tuple(((columns.names[rows[place]],), float(mixed[place])) for place in np.flatnonzero(mixed))


def weighed(counts: Mapping[str, float], number: int, prior: Shares) -> dict[str, float]:
    """Combines two estimates of the node that a pod gets: `counts` says how often the `number` simulated searches chose
    each node, and `prior` is the result of `shares_of_any_start`.

    Tries several weights for `prior`. Predicts the node of each simulated search from `prior` and all other simulated
    searches, and uses the weight with the best predictions. The values of the result have the same sum as `counts`.
    """
    total = sum(counts.values())
    if not prior or total <= 0 or number < 2:
        return dict(counts)
    before = {name: share / len(names) for names, share in prior for name in names}
    names = list(dict.fromkeys((*counts, *before)))
    counted = np.array([counts.get(name, 0.0) for name in names]) / total * number
    expected = np.array([before.get(name, 0.0) for name in names]) + _NEGLIGIBLE / len(names)
    expected /= expected.sum()
    worth = max(_WORTH, key=lambda each: _likelihood(counted, expected, number, each))
    weights = (counted + worth * expected) / (number + worth) * total
    return {name: float(weight) for name, weight in zip(names, weights, strict=True)}


def _likelihood(counted: _Weights, expected: _Weights, number: int, worth: float) -> float:
    """Rates the predictions that `weighed` makes if `prior` has the weight `worth`. Returns a log-likelihood: a greater
    value means better predictions.

    `counted` says how many of the `number` simulated searches chose each node. `expected` is the probability of each
    node according to `prior`. For each search, the function computes the probability of the node that the search chose,
    from the choices of all other searches and from `expected`. In this computation, `expected` counts as much as
    `worth` searches. For example, if `worth` is 8 and `number` is 9, the 8 other searches and `expected` count equally.
    The result is the sum of the logarithms of these probabilities.
    """
    seen = counted > 0
    others = np.maximum(counted[seen] - 1.0, 0.0)
    return float((counted[seen] * np.log((others + worth * expected[seen]) / (number - 1 + worth))).sum())


def _groups(totals: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    order = np.argsort(-totals, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(totals[order])) + 1)


def _by_rank(totals: NDArray[np.int64], wanted: int) -> _Weights:
    """Returns the probability of each node if the scheduler checks the nodes in random order. The scheduler chooses a
    node if its search finds this node and no node with a higher score."""
    fitting = len(totals)
    shares, none_before, better = np.zeros(fitting), 1.0, 0
    for places in _groups(totals):
        left = fitting - better - np.arange(len(places))
        none = none_before * float(np.prod(np.maximum(left - wanted, 0) / left))
        shares[places] = (none_before - none) / len(places)
        none_before, better = none, better + len(places)
        if none < _NEGLIGIBLE:
            break
    return shares


def _by_age(totals: NDArray[np.int64], wanted: int) -> _Weights:
    """Returns the probability of each node if the order of nodes is known but every start is equally likely. The
    probability is the fraction of starts from which the search finds this node and no node with a higher score."""
    fitting = len(totals)
    shares, is_open = np.zeros(fitting), np.ones(fitting, dtype=bool)
    for places in _groups(totals):
        here = np.zeros(fitting)
        here[places] = 1.0
        found = _sums(here, wanted)
        taken = np.where(is_open & (found > 0.5), 1.0 / np.maximum(found, 1.0), 0.0)
        shares[places] = _sums(taken[::-1], wanted)[::-1][places] / fitting
        is_open &= found < 0.5
        if not is_open.any():
            break
    return shares


def _sums(line: _Weights, wanted: int) -> _Weights:
    """Returns, for each position, the sum of `wanted` values beginning at this position. After the last value, the sum
    continues with the first value."""
    wanted = min(wanted, len(line))
    ends = np.concatenate(([0.0], np.cumsum(np.concatenate((line, line[:wanted])))))
    return ends[wanted : wanted + len(line)] - ends[: len(line)]
