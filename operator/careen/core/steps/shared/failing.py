"""The two ways in which a step (the function that decides for a node in its phase) lets a node fail. Either the agent
undoes everything on the node and releases the claim, or the agent keeps the claim, so that no other node begins its
drain."""

from __future__ import annotations

from dataclasses import replace

from careen.core.actions import Action, Notify, Occasion, WriteLock
from careen.core.decision import Decision
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.lock import changes
from careen.core.lock.content import LockContent
from careen.core.node.restoring import NO_CHANGE, NodeChange
from careen.core.people import telling
from careen.core.situation import Situation
from careen.core.writing import Status, Transition, move, undo, write_lock

LOOK_SECONDS = 10.0


def undone(situation: Situation, code: Code, sentence: str, *, tries: int | None = None) -> Decision:
    """Return the decision to move to the phase Failed, undo everything on the node and release the claim."""
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
        Transition(Phase.FAILED, progress, then=_message(situation, Occasion.FAILED, sentence)),
    )


def halted(
    situation: Situation, code: Code, sentence: str, *, progress: Progress, change: NodeChange = NO_CHANGE
) -> Decision:
    """Return the decision to move to the phase Failed, keep the claim and mark the claim as failed in the lock, so that
    no other node begins its drain. If the write of the mark fails, the agent tries again in the next round of its loop.
    """
    record = replace(progress, failed=code.value, failed_at=situation.mark(), failures=progress.failures + 1)
    then: tuple[Action, ...] = (*mark(situation, code.value), *_message(situation, Occasion.HALTED, sentence))
    return move(
        situation, Status(code, sentence), Transition(Phase.FAILED, record, change=change, then=then, look=LOOK_SECONDS)
    )


def mark(situation: Situation, failed: str) -> tuple[WriteLock, ...]:
    """Return the write that marks this node's claim in the lock as failed. Return nothing if the claim already has the
    mark, or if the lock does not contain the claim."""
    content, entry = situation.lock, situation.own_entry
    if not isinstance(content, LockContent) or entry is None or entry.failed == failed:
        return ()
    return (
        write_lock(
            situation,
            f"mark the claim as failed, which halts the roll-out: {failed}",
            changes.mark_failed(content, entry.node, entry.id, failed),
        ),
    )


def _message(situation: Situation, occasion: Occasion, sentence: str) -> tuple[Notify, ...]:
    return (telling.about_failure(situation, occasion, sentence),)
