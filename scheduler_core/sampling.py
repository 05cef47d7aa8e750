"""How many feasible nodes kube-scheduler looks for before it stops searching.

Source: numFeasibleNodesToFind in pkg/scheduler/schedule_one.go, v1.36. Where the search begins depends on every
pod that was scheduled before, so which nodes it finds cannot be told from outside; how many it looks for can.
"""

from __future__ import annotations

FEWEST_NODES = 100
_LEAST_PERCENTAGE = 5


def nodes_to_find(nodes: int, percentage: int) -> int:
    """Of so many nodes that PreFilter left. `percentage` is percentageOfNodesToScore of the profile; 0 means
    adaptive."""
    if nodes < FEWEST_NODES:
        return nodes
    share = percentage or max(_LEAST_PERCENTAGE, 50 - nodes // 125)
    return max(FEWEST_NODES, nodes * share // 100)
