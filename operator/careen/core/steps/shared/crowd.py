"""Lets a waiting node of a large fleet count the waiting nodes while there are no hand-overs.

A hand-over counts the waiting nodes. While gates refuse all nodes, or the lock is paused, there are no hand-overs. Then
each node must assume that every node with an agent waits, so it makes long pauses. One short list shows whether only a
few nodes wait. If so, they may read the lock as often as in a small fleet. The list ends at a hundred Nodes, and all
nodes together request it at most once a second.
"""

from __future__ import annotations

from dataclasses import replace

from careen.core.decision import Decision
from careen.core.facts.memory import Crowd
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.times import from_rfc3339
from careen.core.lock import order
from careen.core.lock.content import LockContent
from careen.core.situation import Situation
from careen.core.writing import want

# So few nodes look every half minute with any count.
FEW = int(order.OTHERS_LOOK_SECONDS * order.LOOKS_PER_SECOND)


def look(situation: Situation) -> Decision | Situation:
    """Return the situation with a recent count, or a decision that first asks the shell for the count."""
    if not _is_due(situation):
        return situation
    seen, memory = situation.seen.crowd, situation.memory
    if isinstance(seen, NotAsked):
        return want(situation, Evidence.CROWD)
    crowd = None if isinstance(seen, Unknown) else seen
    holds = max(order.COUNT_SECONDS, float(memory.agents or 0) if crowd is None else 0.0)
    counted = Crowd(count=crowd, until=situation.seen.uptime + holds)
    return situation.with_memory(replace(memory, crowd=counted))


def how_many_wait(situation: Situation) -> int:
    """Return how many nodes may be waiting, as far as this node knows."""
    told, number = _as_told(situation), counted(situation)
    return told if number is None else min(told, number)


def counted(situation: Situation) -> int | None:
    """Return this node's own recent count. Return None if it has none, or if there were too many nodes to count."""
    return situation.memory.crowd.count if situation.seen.uptime < situation.memory.crowd.until else None


def _is_due(situation: Situation) -> bool:
    """Whether a count is due. No count is due while the need is young, because a whole fleet may have seen the need in
    the same minute, and all nodes would count at once."""
    since = from_rfc3339(situation.progress.need_since)
    is_old = since is not None and (situation.seen.now - since).total_seconds() >= order.COUNT_SECONDS
    return is_old and situation.seen.uptime >= situation.memory.crowd.until and _as_told(situation) > FEW


def _as_told(situation: Situation) -> int:
    """Return how many nodes may be waiting, according to the lock. If the lock does not say, return the number of
    agents."""
    content = situation.lock
    known = content if isinstance(content, LockContent) else None
    return order.how_many_wait(known, situation.memory.agents, situation.seen.now)
