"""The two ways in which a step fails. Either it undoes everything and releases the claim, or it keeps the claim, which
halts the roll-out."""

from __future__ import annotations

from dataclasses import replace

from careen.core.actions import Action, Notify, Occasion, WriteLock
from careen.core.decision import Decision
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.lock import content as lock
from careen.core.lock.content import LockContent
from careen.core.people import telling
from careen.core.situation import Situation
from careen.core.writing import NO_CHANGE, NodeChange, Status, Transition, move, undo, write_lock

LOOK_SECONDS = 10.0


def undone(situation: Situation, code: Code, sentence: str, *, tries: int | None = None) -> Decision:
    """Fail, undo everything on the node and release the claim."""
    before = situation.progress
    progress = replace(
        before,
        failed=code.value,
        failed_at=situation.mark(),
        failures=before.failures + 1,
        tries=before.tries if tries is None else tries,
    )
    return undo(
        situation,
        Status(code, sentence),
        Transition(Phase.FAILED, progress, then=_told(situation, Occasion.FAILED, sentence)),
    )


def halted(
    situation: Situation, code: Code, sentence: str, *, progress: Progress, change: NodeChange = NO_CHANGE
) -> Decision:
    """Fail, keep the claim and mark it as failed in the lock, which halts the roll-out. If the mark does not land, the
    next turn writes it."""
    record = replace(progress, failed=code.value, failed_at=situation.mark(), failures=progress.failures + 1)
    then: tuple[Action, ...] = (*mark(situation, code.value), *_told(situation, Occasion.HALTED, sentence))
    return move(
        situation, Status(code, sentence), Transition(Phase.FAILED, record, change=change, then=then, look=LOOK_SECONDS)
    )


def mark(situation: Situation, failed: str) -> tuple[WriteLock, ...]:
    """Return the write that marks this node's claim in the lock as failed. Return nothing if the claim already has the
    mark."""
    content, entry = situation.lock, situation.own_entry
    if not isinstance(content, LockContent) or entry is None or entry.failed == failed:
        return ()
    return (
        write_lock(situation, f"the roll-out halts: {failed}", lock.mark_failed(content, entry.node, entry.id, failed)),
    )


def _told(situation: Situation, occasion: Occasion, sentence: str) -> tuple[Notify, ...]:
    return (telling.about_failure(situation, occasion, sentence),)
