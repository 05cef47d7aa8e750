"""Which nodes kube-scheduler checks before it stops its search.

From 100 nodes on, the scheduler stops when it has found enough nodes that fit. Where its search starts depends on every
pod that it scheduled before, so other programs do not know the start; but the result can be computed for any start.
Sources: findNodesThatPassFilters and numFeasibleNodesToFind in pkg/scheduler/schedule_one.go, chunkSizeFor in
pkg/scheduler/framework/parallelize/parallelism.go, v1.36.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.diagnosis import Diagnosis
from scheduler_core.values import Value

FEWEST_NODES = 100
_LEAST_PERCENTAGE = 5

Rows = NDArray[np.intp]


def nodes_to_find(nodes: int, percentage: int) -> int:
    """The number of fitting nodes after which the scheduler stops. `nodes`: how many PreFilter left. `percentage`: the
    profile's percentageOfNodesToScore; if it is 0, the scheduler computes another from `nodes`."""
    if nodes < FEWEST_NODES:
        return nodes
    share = percentage or max(_LEAST_PERCENTAGE, 50 - nodes // 125)
    return max(FEWEST_NODES, nodes * share // 100)


class Search(Value):
    """How the scheduler searches its node list in one cycle.

    `start` is the scheduler's nextStartNodeIndex: the position of the first node that it checks. `workers` proceed in
    parallel at equal speed: one per processor, at most the configured `parallelism`. `order` selects one of
    `Columns.tree_orders`; `shuffle`, if not 0, the random order with this number (`Columns.shuffled_order`) instead.
    """

    start: int = 0
    workers: int = 1
    order: int = 0
    shuffle: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The rows of the fitting nodes, in the order in which the search found them, and the number of nodes that it
    checked. The next search starts that many positions later."""

    rows: Rows
    processed: int


def run_search(rows: Rows, fits: NDArray[np.bool_], wanted: int, search: Search, parallelism: int) -> Found:
    """`rows` are in the scheduler's node order; `fits` says for each whether it passes the filters. Finds at most
    `wanted` nodes. If more than `wanted` fit, the checked nodes end before the first fitting node that is not returned;
    otherwise all are checked."""
    checked = rows[(search.start + _checking_order(len(rows), search.workers, parallelism)) % max(1, len(rows))]
    fitting = np.flatnonzero(fits[checked])
    end = int(fitting[wanted]) if len(fitting) > wanted else len(checked)
    return Found(checked[fitting[:wanted]], end)


class Windows:
    """Several searches over one pod's filter results, each with its own start."""

    def __init__(self, diagnosis: Diagnosis, wanted: int, parallelism: int) -> None:
        columns = diagnosis.nodes.columns
        self._searched = None if len(diagnosis.searched) == len(columns) else diagnosis.searched
        self._is_refused = diagnosis.prefilter is not None
        self._columns = columns
        self._fits = np.zeros(len(columns), dtype=bool)
        self._fits[diagnosis.passed] = True
        self._wanted = wanted
        self._parallelism = parallelism

    def found(self, search: Search) -> Found:
        """If PreFilter refused all nodes, the search checks none."""
        rows = self._order(search)
        if self._is_refused:
            return Found(rows[:0], 0)
        return run_search(rows, self._fits, self._wanted, search, self._parallelism)

    def _order(self, search: Search) -> Rows:
        orders = self._columns.tree_orders
        order = self._columns.shuffled_order(search.shuffle) if search.shuffle else orders[search.order % len(orders)]
        # The real order of the nodes in a PreFilter result is that of a Go map, which is random.
        return order if self._searched is None else order[np.isin(order, self._searched)]


@lru_cache(maxsize=256)
def _checking_order(nodes: int, workers: int, parallelism: int) -> Rows:
    """Positions of the node list as the parallel workers check them. A worker that has finished its chunk takes the
    next free chunk."""
    chunk = max(1, min(isqrt(nodes), nodes // parallelism + 1))
    places = np.arange(nodes, dtype=np.intp)
    chunks, within = places // chunk, places % chunk
    side_by_side = max(1, min(workers, parallelism))
    order = np.lexsort((chunks % side_by_side, within, chunks // side_by_side))
    order.flags.writeable = False
    return order
