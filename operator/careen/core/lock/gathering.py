"""How long the first claim of a new roll-out waits until other nodes can have passed their gates, so that the order
includes them."""

from __future__ import annotations

from careen.core.lock.pauses import NEXT_LOOK_SECONDS

MANY_AGENTS = 500  # even a small API server takes this many patches in 2 s, the interval of the sentinel checks
SPREAD_SECONDS = 60.0  # over which the agents of a larger fleet stagger their soft taints
GATHER_SECONDS = 3.0  # agents check their hosts every 2 s; taint, count and label take one more second
GATHER_LOOKS_PER_SECOND = 100  # of all nodes that delay the first claim; with up to 300 agents, each pauses 3 s


def spread_seconds(agents: int | None) -> float:
    """The longest time that an agent of a fleet of this size waits before it sets its soft taint."""
    return 0.0 if agents is None or agents <= MANY_AGENTS else SPREAD_SECONDS


def gather_seconds(agents: int | None) -> float:
    """How long a new roll-out waits before its first claim, in a fleet of this size (None: unknown)."""
    if agents is not None and agents <= 1:
        return 0.0
    return GATHER_SECONDS + spread_seconds(agents)


def gather_pause_seconds(agents: int | None) -> float:
    """How long a node that delays the first claim pauses before it reads the lock again, where another node may have
    taken a claim."""
    return max(NEXT_LOOK_SECONDS, (agents or 0) / GATHER_LOOKS_PER_SECOND)
