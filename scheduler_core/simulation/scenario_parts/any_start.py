"""On which nodes one pod may land if nothing is known of the scheduler's search: neither start nor order.

A forecast simulates the whole drain with some of the possible searches only, and misses the nodes that others choose:
if the scheduler checks a tenth of 5,000 nodes, different starts choose about thirty different nodes. For a single pod,
all can be computed. `weighed` combines both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cycle_result import CycleResult
from scheduler_core.simulation.searches import Shares

_NEGLIGIBLE: Final = 1e-4
# The possible weights of `prior` in `weighed`, in simulated searches.
_WORTH: Final = (0.5, 2.0, 8.0, 32.0, 128.0, 512.0, 4096.0)

_Weights = NDArray[np.float64]


def shares_of_any_start(result: CycleResult, wanted: int, *, is_order_known: bool) -> Shares:
    """The probability of each node if the search may start anywhere and stops after `wanted` fitting nodes. `result`
    is of a cycle that checked every node. Unless `is_order_known`, the computed order and a random one have
    probability one half each. Nodes of equal score are equally likely."""
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
    """Combines two estimates of the pod's node: `counts`, how often the `number` simulated searches chose each node,
    and `prior`, from `shares_of_any_start`.

    Takes the weight of `prior` that best predicts the node of each search from `prior` and all other searches. The
    result has the sum of `counts`.
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
    """How well `weighed` predicts with `prior` at the weight `worth`: the log-likelihood.

    For each of the `number` searches, the probability of its node by all other searches (`counted`) and by `expected`,
    which counts as much as `worth` searches: with 8 and `number` 9, both count equally. The result is the sum of the
    logarithms.
    """
    seen = counted > 0
    others = np.maximum(counted[seen] - 1.0, 0.0)
    return float((counted[seen] * np.log((others + worth * expected[seen]) / (number - 1 + worth))).sum())


def _groups(totals: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    order = np.argsort(-totals, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(totals[order])) + 1)


def _by_rank(totals: NDArray[np.int64], wanted: int) -> _Weights:
    """In random order: the search finds this node and none with a higher score."""
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
    """In a known order from equally likely starts: the share of those from which the search finds this node and none
    with a higher score."""
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
    """For each position, the sum of the `wanted` values from there on, around the end."""
    wanted = min(wanted, len(line))
    ends = np.concatenate(([0.0], np.cumsum(np.concatenate((line, line[:wanted])))))
    return ends[wanted : wanted + len(line)] - ends[: len(line)]
