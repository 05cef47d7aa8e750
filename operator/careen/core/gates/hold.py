"""This gate refuses to let the node begin its drain or its reboot in three cases: the lock is paused, the lock cannot
be read or understood, or the node has a hold. A hold is an annotation by which a person keeps the node from rebooting.
"""

from __future__ import annotations

import re
from datetime import datetime

from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, NotAsked, Unknown
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import short
from careen.core.gates.question import ALWAYS, Cost, Gate, When, nothing
from careen.core.lock.content import Garbage
from careen.core.situation import Situation

_UNTIL = re.compile(r"(?:^|[\s,;])until=(\S+)")


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return the first refusal of these checks: an unreadable lock, a pause of the lock, a hold on this node."""
    lock = situation.lock
    if isinstance(lock, (Unknown, NotAsked)):
        return _no(
            Code.LOCK_UNKNOWN,
            f"the lock cannot be read: {lock.why}",
        )
    if isinstance(lock, Garbage):
        return _no(Code.LOCK_GARBAGE, f"the lock's content cannot be understood: {lock.why}")
    if lock.is_paused:
        return _no(Code.PAUSED, f"a person paused the lock{f': {lock.pause_reason}' if lock.pause_reason else ''}")
    if held := held_because(situation.node, situation.seen.now):
        return _no(Code.HELD, held)
    return None


def held_because(node: NodeView, now: datetime) -> str:
    """Return why the node has a hold (an annotation by which a person keeps the node from rebooting). Return an empty
    text if there is no hold or the hold has expired. A hold whose `until` cannot be read never expires."""
    text = node.annotations.get(keys.HOLD)
    if text is None:
        return ""
    until = until_of(text)
    if until is not None and until <= now:
        return ""
    return f"held: {short(text.strip())}" if text.strip() else "the node is held by a person who gave no reason"


def until_of(text: str) -> datetime | None:
    """Return the instant after `until=` in the value of an annotation careen.dev/hold or careen.dev/reboot-now. Return
    None if there is no readable instant."""
    match = _UNTIL.search(text)
    return from_rfc3339(match[1]) if match else None


def ends(node: NodeView, _policy: Policy) -> datetime | None:
    """Return the instant at which the Node's hold ends; None if the hold has no end."""
    return until_of(node.annotations.get(keys.HOLD, ""))


def _no(code: Code, sentence: str) -> Refusal:
    return Refusal(gate=GATE.name, code=code, sentence=sentence)


GATE = Gate(
    name="hold",
    ask=ask,
    when=ALWAYS,
    cost=Cost.CHEAP,
    needs=nothing,
    ends=ends,
)
