"""Refuses while the lock is paused, cannot be read or understood, or while the node has a hold."""

from __future__ import annotations

import re
from datetime import datetime

from careen.core.facts import keys
from careen.core.facts.observation import NodeView, NotAsked, Unknown
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import short
from careen.core.gates.question import Cost, No, gate
from careen.core.lock.content import Garbage, LockContent
from careen.core.situation import Situation

_UNTIL = re.compile(r"(?:^|[\s,;])until=(\S+)")


@gate(
    "hold",
    cost=Cost.CHEAP,
    ends=lambda node, _policy: until_of(node.annotations.get(keys.HOLD, "")),
)
def hold(situation: Situation) -> No | None:
    if no := closed(situation.lock):
        return no
    held = held_because(situation.node, situation.seen.now)
    return No(Code.HELD, held) if held else None


def closed(lock: LockContent | Garbage | Unknown | NotAsked) -> No | None:
    """The gate's answer to the lock alone."""
    if isinstance(lock, (Unknown, NotAsked)):
        return No(Code.LOCK_UNKNOWN, f"the lock cannot be read: {lock.why}")
    if isinstance(lock, Garbage):
        return No(Code.LOCK_GARBAGE, f"the lock's content cannot be understood: {lock.why}")
    if lock.is_paused:
        return No(Code.PAUSED, f"a person paused the lock{f': {lock.pause_reason}' if lock.pause_reason else ''}")
    return None


def held_because(node: NodeView, now: datetime) -> str:
    """Why the node has a hold; "" without one, or if it has expired. A hold whose `until` cannot be read never
    expires."""
    text = node.annotations.get(keys.HOLD)
    if text is None:
        return ""
    until = until_of(text)
    if until is not None and until <= now:
        return ""
    return f"held: {short(text.strip())}" if text.strip() else "the node is held by a person who gave no reason"


def until_of(text: str) -> datetime | None:
    """The instant after `until=` in the annotation careen.dev/hold or careen.dev/reboot-now; None if there is no
    readable one."""
    match = _UNTIL.search(text)
    return from_rfc3339(match[1]) if match else None
