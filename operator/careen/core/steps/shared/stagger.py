"""Staggers the taint patches of a large fleet over a minute: 5,000 patches at once would hurt the API server.

An agent cannot see whether others are about to write, but it knows how many agents there are without a further request:
it reads the DaemonSet for the lock, and its status says how many nodes should run an agent.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from careen.core.lock.pauses import spread_seconds

MOMENT_SECONDS = 5.0  # in 5 s of the 60 s, a twelfth of the agents write: of 5,000 agents fewer than MANY_AGENTS


def delay_seconds(node: str, agents: int | None, at: datetime) -> float:
    """How long after `at` this node's agent waits before it sets the soft taint; 0 if the size of the fleet is unknown
    or at most MANY_AGENTS.

    In each minute of the clock the agent may set the taint for `MOMENT_SECONDS`, so a restarted process does not begin
    the wait anew. Even an agent that restarts often checks the host's need at least once in these five seconds.
    """
    longest = spread_seconds(agents)
    if not longest:
        return 0.0
    since = (at.timestamp() - moment_seconds(node, longest)) % longest
    return 0.0 if since < MOMENT_SECONDS else longest - since


def moment_seconds(node: str, every: float) -> float:
    """Where the node's moment begins in each period of `every` seconds of the clock."""
    return every * _share(node)


def _share(node: str) -> float:
    """A number in [0, 1) that depends only on the name. The numbers are evenly distributed, however nodes are named."""
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:7], "big") / 2**56
