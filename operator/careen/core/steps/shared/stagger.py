"""Spreads the soft taints (effect PreferNoSchedule) of a large fleet over a minute. Otherwise, if all hosts need a
reboot in the same second, all agents would send their patches to the API server at once.

An agent cannot see whether other agents are about to write. But the agent knows how many agents there are, without a
further request: it reads the DaemonSet for the lock, and the DaemonSet says how many nodes should run an agent.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

MANY_AGENTS = 500  # even a small API server takes this many patches in 2 s, the interval of the sentinel checks
SPREAD_SECONDS = 60.0
MOMENT_SECONDS = 5.0  # in 5 s of the 60 s, a twelfth of the agents write: of 5,000 agents fewer than MANY_AGENTS


def delay_seconds(node: str, agents: int | None, at: datetime) -> float:
    """Return how many seconds after the instant `at` this node's agent waits before it sets the soft taint. Return 0 if
    the size of the fleet is unknown or at most MANY_AGENTS.

    In each minute of the clock there are five seconds (`MOMENT_SECONDS`) in which this node's agent may set the taint,
    so a restarted process does not begin the wait anew. At least once in these five seconds, even an agent that
    restarts often checks whether its host needs a reboot.
    """
    longest = longest_seconds(agents)
    if not longest:
        return 0.0
    since = (at.timestamp() - longest * _share(node)) % longest
    return 0.0 if since < MOMENT_SECONDS else longest - since


def longest_seconds(agents: int | None) -> float:
    """Return the longest time in seconds that an agent waits before it sets the soft taint, in a fleet with this number
    of agents."""
    return 0.0 if agents is None or agents <= MANY_AGENTS else SPREAD_SECONDS


def _share(node: str) -> float:
    """Return a number for this node that is at least 0 and less than 1. The number depends only on the node's name.
    Over all nodes the numbers are evenly distributed, however the nodes are named."""
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:7], "big") / 2**56
