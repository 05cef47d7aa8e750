"""Which of the nodes that fit kube-scheduler looks at, where it does not look at all of them.

In a cluster of 100 nodes and more it stops when it has found enough. Where it begins depends on every pod that it
scheduled before, so nobody can tell that from outside; what it finds from a given start can be told. Sources:
findNodesThatPassFilters and numFeasibleNodesToFind in pkg/scheduler/schedule_one.go, chunkSizeFor in
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
    """Of so many nodes that PreFilter left. `percentage` is percentageOfNodesToScore of the profile; 0 means
    adaptive."""
    if nodes < FEWEST_NODES:
        return nodes
    share = percentage or max(_LEAST_PERCENTAGE, 50 - nodes // 125)
    return max(FEWEST_NODES, nodes * share // 100)


class Search(Value):
    """How the scheduler goes through its nodes in one cycle.

    `start` is its nextStartNodeIndex. `workers` go forward at equal speed: as many as it has processors, at most
    its `parallelism`. `order` is the place of its order of nodes among `Columns.tree_orders`; with a
    `shuffle` other than 0 it is the order drawn with that (`Columns.shuffled_order`)."""

    start: int = 0
    workers: int = 1
    order: int = 0
    shuffle: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The rows that a search found, in the order in which it found them, and how many nodes it had processed
    when it stopped: so many places further the next search begins."""

    rows: Rows
    processed: int


def look(rows: Rows, fits: NDArray[np.bool_], wanted: int, search: Search, parallelism: int) -> Found:
    """What the search finds among these rows, which stand in the scheduler's own order; `fits` says by row which
    nodes pass the filters. The first node that fits beyond `wanted` ends it, and is not counted."""
    visited = rows[(search.start + _visits(len(rows), search.workers, parallelism)) % max(1, len(rows))]
    fitting = np.flatnonzero(fits[visited])
    end = int(fitting[wanted]) if len(fitting) > wanted else len(visited)
    return Found(visited[fitting[:wanted]], end)


class Windows:
    """What searches from different starts find, after one pod's filters."""

    def __init__(self, diagnosis: Diagnosis, wanted: int, parallelism: int) -> None:
        columns = diagnosis.nodes.snapshot.columns
        self._searched = None if len(diagnosis.searched) == len(columns) else diagnosis.searched
        self._is_refused = diagnosis.prefilter is not None
        self._columns = columns
        self._fits = np.zeros(len(columns), dtype=bool)
        self._fits[diagnosis.passed] = True
        self._wanted = wanted
        self._parallelism = parallelism

    def found(self, search: Search) -> Found:
        """What this search finds. Nothing is processed where PreFilter refused all nodes at once."""
        rows = self._order(search)
        if self._is_refused:
            return Found(rows[:0], 0)
        return look(rows, self._fits, self._wanted, search, self._parallelism)

    def _order(self, search: Search) -> Rows:
        orders = self._columns.tree_orders
        order = self._columns.shuffled_order(search.shuffle) if search.shuffle else orders[search.order % len(orders)]
        # The real order of what a PreFilter left is that of a Go map, which is random.
        return order if self._searched is None else order[np.isin(order, self._searched)]


@lru_cache(maxsize=256)
def _visits(nodes: int, workers: int, parallelism: int) -> Rows:
    """Places in the order in which so many workers reach them: each takes the next chunk when it has done its own."""
    chunk = max(1, min(isqrt(nodes), nodes // parallelism + 1))
    places = np.arange(nodes, dtype=np.intp)
    chunks, within = places // chunk, places % chunk
    side_by_side = max(1, min(workers, parallelism))
    visits = np.lexsort((chunks % side_by_side, within, chunks // side_by_side))
    visits.flags.writeable = False
    return visits
