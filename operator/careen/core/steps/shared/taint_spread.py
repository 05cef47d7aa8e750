"""When a whole fleet sees a need in the same second, its taints are spread over a minute, so that the API
server is not met by all at once.

Whether others begin at this moment cannot be seen before they have begun. What is known without a request is
how many could: the number of nodes that should run an agent stands on the DaemonSet, which every agent reads
for the lock."""

from __future__ import annotations

import hashlib
from datetime import datetime

MANY_AGENTS = (
    500  # fewer patches than a small API server takes in the two seconds over which the sentinel's looks are spread
)
SPREAD_SECONDS = 60.0
MOMENT_SECONDS = 5.0  # a twelfth of 5,000 agents begins at once then: fewer than MANY_AGENTS


def delay_seconds(node: str, agents: int | None, at: datetime) -> float:
    """How long this node waits with its taint, from `at` on; nothing in a fleet of a usual size, or one whose
    size nobody knows.

    Its moment comes once in every minute of the clock, so a process that was started again in between does not
    wait anew, and lasts as long as a sentinel is not looked at, so that one that lives for seconds only does
    not miss it for ever."""
    longest = longest_seconds(agents)
    if not longest:
        return 0.0
    since = (at.timestamp() - longest * _share(node)) % longest
    return 0.0 if since < MOMENT_SECONDS else longest - since


def longest_seconds(agents: int | None) -> float:
    """How long any node of such a fleet may wait."""
    return 0.0 if agents is None or agents <= MANY_AGENTS else SPREAD_SECONDS


def _share(node: str) -> float:
    """The node's own number in [0, 1): the same at every start, and even over any way of naming nodes."""
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:7], "big") / 2**56
