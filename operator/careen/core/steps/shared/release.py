"""Releases a node's claim after everything on the node was undone: the displaced workloads become healthy, its entry
leaves the lock, then the claim id leaves the Node. Until then no other agent takes the entry for a stale claim. Not a
phase, but a part of Waiting and Failed."""

from __future__ import annotations

from careen.core.decision import Decision, stored_refusals
from careen.core.drain import baseline
from careen.core.facts import keys
from careen.core.facts.phases import Evidence
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.lock.content import Garbage, LockContent
from careen.core.outcomes import Status, Stay, Transition, move, removal, stay
from careen.core.situation import Situation
from scheduler_core.values import replace_value as replace

_LOOK_SECONDS = 2.0
_KEEPS = "; the node keeps its claim for now: "
LATE_WRITE_SECONDS = (
    75.0  # kube-apiserver gives up on a write after 60 s; until then a late write may still add the claim
)


def decide(situation: Situation) -> Decision:
    """Wait for a lock that can be understood, remove the claim from it, then from the record."""
    lock = situation.lock
    if isinstance(lock, Garbage):
        return stay(
            situation,
            Status(Code.LOCK_GARBAGE, f"cannot release the claim, because the lock cannot be understood: {lock.why}"),
            Stay(look=_LOOK_SECONDS * 5),
        )
    if not isinstance(lock, LockContent):
        return stay(
            situation,
            Status(Code.LOCK_UNKNOWN, f"cannot release the claim, because the lock cannot be read: {lock.why}"),
            Stay(look=_LOOK_SECONDS),
        )
    if found := _settle(situation):
        return found
    if out := removal(situation):
        return stay(
            situation,
            Status(Code.RELEASING, "the agent removes the claim from the lock", is_silent=True),
            Stay(look=0.0, actions=out),
        )
    sentence = _told_before(situation) or "the claim is released"
    situation.remember(lock_due=situation.seen.uptime + LATE_WRITE_SECONDS)
    return move(
        situation,
        Status(
            Code.RELEASING,
            sentence,
            refusals=stored_refusals(situation.node),
            label=situation.node.labels.get(keys.REBOOT_LABEL),
        ),
        Transition(situation.phase, without_claim(situation.progress), look=0.5),
    )


def _settle(situation: Situation) -> Decision | None:
    """Keep the claim after an undone drain until the displaced workloads are healthy, at most --settle-timeout. None:
    release it."""
    progress = situation.progress
    waited = situation.elapsed(progress.settle_started)
    if situation.own_entry is None or waited is None or not baseline.compared(progress.owners):
        return None
    before, now = baseline.due(situation), situation.read(Evidence.OWNERS)
    ailing = baseline.what_ails(before, now) or baseline.what_moves(before, now)
    if not ailing or waited > situation.policy.settle_timeout_seconds:
        return None
    return stay(
        situation,
        Status(
            Code.SETTLING,
            f"{_told_before(situation)}{_KEEPS}{ailing}",
            refusals=stored_refusals(situation.node),
            label=situation.node.labels.get(keys.REBOOT_LABEL),
        ),
        Stay(look=baseline.look_seconds(waited)),
    )


def _told_before(situation: Situation) -> str:
    """Why the drain was undone, as the Node says."""
    return situation.node.annotations.get(keys.REASON, "").partition(_KEEPS)[0]


def without_claim(progress: Progress) -> Progress:
    """A new record with what outlives a claim: the need, its reboots and tries, careen's taint and the failures."""
    return replace(
        Progress(),
        phase=progress.phase,
        need_since=progress.need_since,
        tainted_at=progress.tainted_at,
        taint_key=progress.taint_key,
        reboots_for_need=progress.reboots_for_need,
        tries=progress.tries,
        failed=progress.failed,
        failed_at=progress.failed_at,
        failures=progress.failures,
    )
