"""Lets a waiting node of a large fleet count the waiting nodes while no other node counts them.

Usually a node that releases or takes a claim counts the waiting nodes. While gates refuse all nodes, or the lock is
paused, no node does. Then each waiting node must assume that every node with an agent waits, and its agent pauses for
long between two reads of the lock. One short list, which ends at a hundred Nodes, shows whether only a few nodes wait,
so that their agents may read the lock as often as in a small fleet. All waiting nodes together request it at most once
a second.
"""

from __future__ import annotations

from careen.core.facts.memory import Crowd
from careen.core.facts.phases import Evidence
from careen.core.facts.times import from_rfc3339
from careen.core.lock import pauses
from careen.core.situation import Situation

# Up to this many waiting nodes pause for OTHERS_LOOK_SECONDS anyway, so a count could not shorten their pauses.
FEW = int(pauses.OTHERS_LOOK_SECONDS * pauses.LOOKS_PER_SECOND)


def look(situation: Situation) -> None:
    """Count the waiting nodes if a count is due."""
    if not _is_due(situation):
        return
    count = situation.read(Evidence.CROWD)
    holds = max(pauses.COUNT_SECONDS, float(situation.memory.agents or 0) if count is None else 0.0)
    situation.remember(crowd=Crowd(count=count, until=situation.seen.uptime + holds))


def how_many_wait(situation: Situation) -> int:
    """How many nodes may wait: the number by the lock, or this node's own count if that is smaller. Without a recent
    count in the lock, its number is that of all nodes with an agent."""
    told, number = _by_the_lock(situation), counted(situation)
    return told if number is None else min(told, number)


def counted(situation: Situation) -> int | None:
    """This node's own recent count of the waiting nodes; None without one, or if there were too many to count."""
    return situation.memory.crowd.count if situation.seen.uptime < situation.memory.crowd.until else None


def _is_due(situation: Situation) -> bool:
    """Whether this agent has to count now. If the needs of all nodes began in the same minute, all agents would count
    at once, so no count is due until a need is two minutes old: by then random pauses spread the counts."""
    since = from_rfc3339(situation.progress.need_since)
    is_old = since is not None and (situation.seen.now - since).total_seconds() >= pauses.COUNT_SECONDS
    return is_old and situation.seen.uptime >= situation.memory.crowd.until and _by_the_lock(situation) > FEW


def _by_the_lock(situation: Situation) -> int:
    return pauses.how_many_wait(situation.content, situation.memory.agents, situation.seen.now)
