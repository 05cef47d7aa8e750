"""A waiting node of a large fleet counts itself how many wait, where nobody else does.

While all who wait are refused, or the lock is paused, nobody hands the turn over, so nobody counts. All agents may
wait then, and their pauses are as long as so many need. Where few do, one short list tells, and they may look as often
as in a small fleet. The list ends at a hundred Nodes, and together the nodes ask for it once a second at most."""

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

# So many look every half minute whatever anybody counts.
FEW = int(order.OTHERS_LOOK_SECONDS * order.LOOKS_PER_SECOND)


def look(situation: Situation) -> Decision | Situation:
    """A decision when the count has to be asked for first; else the situation to go on with."""
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
    """How many nodes may be waiting, as far as this one knows."""
    told, number = _as_told(situation), counted(situation)
    return told if number is None else min(told, number)


def counted(situation: Situation) -> int | None:
    """How many this node has counted itself; None where it has not, or not of late, or where they are many."""
    return situation.memory.crowd.count if situation.seen.uptime < situation.memory.crowd.until else None


def _is_due(situation: Situation) -> bool:
    """Not while the need is young: a whole fleet may have seen it in the same minute, and all would count at once."""
    since = from_rfc3339(situation.progress.need_since)
    is_old = since is not None and (situation.seen.now - since).total_seconds() >= order.COUNT_SECONDS
    return is_old and situation.seen.uptime >= situation.memory.crowd.until and _as_told(situation) > FEW


def _as_told(situation: Situation) -> int:
    """By the lock, and by the number of agents where it does not tell."""
    content = situation.lock
    known = content if isinstance(content, LockContent) else None
    return order.how_many_wait(known, situation.memory.agents, situation.seen.now)
