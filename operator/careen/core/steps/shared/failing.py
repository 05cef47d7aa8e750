"""How a step fails: everything put back and the claim on its way out, or the claim kept so that the roll-out halts."""

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
    """Fail with everything put back and the claim on its way out."""
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
    """Fail with the claim kept and marked as failed in the lock: the roll-out halts. A mark that does not land
    is set by the next turn."""
    record = replace(progress, failed=code.value, failed_at=situation.mark(), failures=progress.failures + 1)
    then: tuple[Action, ...] = (*mark(situation, code.value), *_told(situation, Occasion.HALTED, sentence))
    return move(
        situation, Status(code, sentence), Transition(Phase.FAILED, record, change=change, then=then, look=LOOK_SECONDS)
    )


def mark(situation: Situation, failed: str) -> tuple[WriteLock, ...]:
    """The write that tells everybody else; none when it stands there already."""
    content, entry = situation.lock, situation.own_entry
    if not isinstance(content, LockContent) or entry is None or entry.failed == failed:
        return ()
    return (
        write_lock(situation, f"the roll-out halts: {failed}", lock.mark_failed(content, entry.node, entry.id, failed)),
    )


def _told(situation: Situation, occasion: Occasion, sentence: str) -> tuple[Notify, ...]:
    return (telling.about_failure(situation, occasion, sentence),)
