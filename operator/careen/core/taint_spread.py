"""When a whole fleet sees a need in the same second, its taints are spread over a minute, so that the API server is not met by all at once.

Whether others begin at this moment cannot be seen before they have begun. What is known without a request is how many could: the number of
nodes that should run an agent stands on the DaemonSet, which every agent reads for the lock.
"""

from __future__ import annotations

import hashlib

MANY_AGENTS = 500                    # fewer patches than a small API server takes in the five seconds over which the sentinel's looks are spread
SPREAD_SECONDS = 60.0


def delay_seconds(node: str, agents: int | None) -> float:
    """How long this node waits with its taint; nothing in a fleet of a usual size, or one whose size nobody knows."""
    return longest_seconds(agents) * _share(node)


def longest_seconds(agents: int | None) -> float:
    """How long any node of such a fleet may wait."""
    return 0.0 if agents is None or agents <= MANY_AGENTS else SPREAD_SECONDS


def _share(node: str) -> float:
    """The node's own number in [0, 1): the same at every start, and even over any way of naming nodes."""
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:7], "big") / 2**56
