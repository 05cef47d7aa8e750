"""Columns that follow from what a node has and what its pods take: filters and scores by resources.

Pods of one request are asked about again and again, and in between few nodes gain or lose a pod. In a large cluster a
column is kept, and only the rows that changed since are worked out again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from scheduler_core.framework.extension_points import Scores
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.tallies import UsageTally

# In smaller clusters working out every row costs no more than finding those that changed.
_FEWEST_NODES: Final = 1000


def by_usage(nodes: NodeList, key: Hashable, work_out: Callable[[NodeList], Scores]) -> Scores:
    """What `work_out` gives for these nodes. It may depend on the key, on what is allocatable on each node, and on
    what the pods there take."""
    columns = nodes.snapshot.columns
    if len(columns) < _FEWEST_NODES:
        return work_out(nodes)
    usage = nodes.snapshot.tally(UsageTally(nodes.rules))
    key = (nodes.rules, key)
    known = columns.by_usage.get(key)
    if known is None:
        column = work_out(NodeList(nodes.snapshot, None, nodes.rules))
    else:
        stamps, column = known
        rows = np.flatnonzero(stamps != usage.stamps)
        if len(rows):
            column = column.copy()
            column[rows] = work_out(NodeList(nodes.snapshot, rows, nodes.rules))
    columns.by_usage[key] = (usage.stamps, column)
    return nodes.take(column)
