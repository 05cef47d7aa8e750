"""Caches columns computed from a node's resources and its pods' requests, for filters and scores by resources.

The scheduler sees pods with equal requests repeatedly, and few nodes change between them. In a large cluster, a column
is cached, and only changed rows are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from scheduler_core.framework.extension_points import Scores
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.tallies import UsageTally
from scheduler_core.snapshot.pods.usage import Usage

# In smaller clusters working out every row costs no more than finding those that changed.
_FEWEST_NODES: Final = 1000


def usage_of(nodes: NodeList) -> Usage:
    """Returns the requests of the pods on these nodes, in the order of the nodes."""
    usage = nodes.snapshot.tally(UsageTally(nodes.rules))
    return usage if nodes.is_all else usage.of(nodes.rows)


def by_usage(nodes: NodeList, key: Hashable, work_out: Callable[[NodeList], Scores]) -> Scores:
    """Returns the result of `work_out` for these nodes. The result may depend on the key, on each node's allocatable
    resources, and on its pods' requests."""
    columns = nodes.snapshot.columns
    if len(columns) < _FEWEST_NODES:
        return work_out(nodes)
    usage = nodes.snapshot.tally(UsageTally(nodes.rules))
    key = (nodes.rules, key)
    kept = columns.by_usage
    known = kept.get(key)
    if known is None:
        column = work_out(NodeList(nodes.snapshot, None, nodes.rules))
    else:
        stamps, column = known
        rows = kept.restamped(stamps, usage.stamps)
        if len(rows):
            column = column.copy()
            column[rows] = work_out(NodeList(nodes.snapshot, rows, nodes.rules))
    kept[key] = (usage.stamps, column)
    return nodes.take(column)
