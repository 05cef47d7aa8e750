"""Caches columns that filters and scores compute from the nodes' resources and their pods' requests.

Pods with equal requests come repeatedly, and few nodes change between two of them. So, in a large cluster, only the
rows of changed nodes are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.tallies import UsageTally
from scheduler_core.snapshot.pods.usage import Usage

Number = TypeVar("Number", bound=np.integer)

# In smaller clusters, computing every row costs no more than finding the changed rows.
_FEWEST_NODES: Final = 1000


def by_usage(nodes: NodeList, key: Hashable, work_out: Callable[[NodeList, Usage], NDArray[Number]]) -> NDArray[Number]:
    """The column of `work_out`. In a large cluster it is computed only for nodes whose pods' requests have changed
    since the last call with this key.

    `work_out` gets the nodes and the requests of their pods. Besides these it may read only what is in the key, and the
    nodes' allocatable resources.
    """
    snapshot, columns, rules = nodes.snapshot, nodes.columns, nodes.rules
    now = snapshot.placements.tally(UsageTally(rules), columns)
    if len(columns.nodes) < _FEWEST_NODES:
        return work_out(NodeList(snapshot, None, rules), now.usage).take(nodes.rows)
    kept, key = columns.by_usage, (rules, key)
    known = kept.get(key)
    changed = None if known is None else now.changed_since(known[0])
    if known is None or changed is None:
        column = work_out(NodeList(snapshot, None, rules), now.usage).copy()  # changed in place from now on
        kept[key] = [now.version, column]
    else:
        column, (rows, usage) = known[1], changed
        if len(rows):
            column[rows] = work_out(NodeList(snapshot, rows, rules), usage)
        known[0] = now.version
    return column.copy() if nodes.is_all else column.take(nodes.rows)
