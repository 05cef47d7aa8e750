"""Lets a waiting node of a large fleet count the waiting nodes while no other node counts them.

Usually a node that releases or takes a claim counts the waiting nodes. While gates refuse all nodes, or the lock is
paused, no node takes or releases a claim. Then each waiting node must assume that every node with an agent waits, so
its agent pauses for long between two reads of the lock. One short list shows whether only a few nodes wait. If only a
few wait, their agents may read the lock as often as in a small fleet. The list ends at a hundred Nodes, and all waiting
nodes together request it at most once a second.
"""

from __future__ import annotations

from dataclasses import replace

from careen.core.decision import Decision
from careen.core.facts.memory import Crowd
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.times import from_rfc3339
from careen.core.lock import pauses
from careen.core.lock.content import LockContent
from careen.core.situation import Situation
from careen.core.writing import want

# Up to this many waiting nodes pause for OTHERS_LOOK_SECONDS anyway, so a count could not shorten their pauses.
FEW = int(pauses.OTHERS_LOOK_SECONDS * pauses.LOOKS_PER_SECOND)


def look(situation: Situation) -> Decision | Situation:
    """Return the decision to request a count of the waiting nodes, if a count is due. If the count was requested in
    this round of the agent's loop, return the situation with its result. If no count is due, return the situation
    unchanged."""
    if not _is_due(situation):
        return situation
    seen, memory = situation.seen.crowd, situation.memory
    if isinstance(seen, NotAsked):
        return want(situation, Evidence.CROWD)
    crowd = None if isinstance(seen, Unknown) else seen
    holds = max(pauses.COUNT_SECONDS, float(memory.agents or 0) if crowd is None else 0.0)
    counted = Crowd(count=crowd, until=situation.seen.uptime + holds)
    return situation.with_memory(replace(memory, crowd=counted))


def how_many_wait(situation: Situation) -> int:
    """Return an estimate of how many nodes wait for their reboots: the number according to the lock, or this node's own
    recent count if that is smaller. The number according to the lock may be too high: if no recent count is in the
    lock, every node with an agent counts as a waiting node."""
    told, number = _by_the_lock(situation), counted(situation)
    return told if number is None else min(told, number)


def counted(situation: Situation) -> int | None:
    """Return this node's own recent count of the waiting nodes. Return None if the node has no recent count, or if
    there were too many nodes to count."""
    return situation.memory.crowd.count if situation.seen.uptime < situation.memory.crowd.until else None


def _is_due(situation: Situation) -> bool:
    """Whether this node's agent has to count the waiting nodes now. A count is due if three conditions are met: the
    need of the node began at least two minutes ago (`pauses.COUNT_SECONDS`), the agent has no recent count, and more
    than `FEW` nodes may be waiting according to the lock.

    Without the first condition, all agents would count at once if the needs of all nodes began in the same minute.
    After two minutes, the random pauses of the agents spread the counts over time.
    """
    since = from_rfc3339(situation.progress.need_since)
    is_old = since is not None and (situation.seen.now - since).total_seconds() >= pauses.COUNT_SECONDS
    return is_old and situation.seen.uptime >= situation.memory.crowd.until and _by_the_lock(situation) > FEW


def _by_the_lock(situation: Situation) -> int:
    """Return how many nodes may be waiting for their reboots, according to the lock. If the lock does not say, return
    the number of nodes with an agent."""
    content = situation.lock
    known = content if isinstance(content, LockContent) else None
    return pauses.how_many_wait(known, situation.memory.agents, situation.seen.now)
