"""The two ways to fail: undone, with the claim released, or halted, with the claim kept so that no other node begins
its drain."""

from __future__ import annotations

from careen.core import losses
from careen.core.actions import Action, Notify, Occasion, WriteLock
from careen.core.decision import Decision
from careen.core.drain import drain_memory
from careen.core.drain.drain_memory import DrainMemory
from careen.core.facts.phases import WORKING, Phase
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.lock import changes
from careen.core.node.restoring import NO_CHANGE, NodeChange
from careen.core.outcomes import Status, Transition, move, undo, write_lock
from careen.core.people import telling
from careen.core.situation import Situation
from scheduler_core.values import replace_value as replace

LOOK_SECONDS = 10.0


def undone(
    situation: Situation,
    code: Code,
    sentence: str,
    *,
    tries: int | None = None,
    change: NodeChange = NO_CHANGE,
    memory: DrainMemory | None = None,
) -> Decision:
    """Move to Failed, undo everything on the node and release the claim. The drain counts towards the day's undone
    drains, also if another client uncordoned the node (a controller may do so after every cordon), but not if it
    evicted nothing because admission kept the cordon away. `memory` is the drain memory without that; None: as it is on
    the Node."""
    before = situation.progress
    if situation.phase in WORKING and code is not Code.WRITE_NOT_KEPT:
        counted = (memory or drain_memory.of(situation.node)).with_undone(situation.server_now)
        change = replace(change, annotations={**change.annotations, **drain_memory.patch(situation.node, counted)})
        until = counted.enough_until(situation.server_now)
        if until is not None and code is not Code.SLOW_PODS:
            sentence = (
                f"{sentence}; {drain_memory.MOST_UNDONE} drains were undone within a day, so the next try is at "
                f"{rfc3339(until)}, or after `careen retry {situation.node.name}`"
            )
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
        Transition(Phase.FAILED, progress, change=change, then=_message(situation, Occasion.FAILED, sentence)),
    )


def uncordoned(situation: Situation, when: str) -> Decision:
    """The cordon is gone: another client removed it, or admission did not let it through."""
    lost = situation.memory.losses.marks.get(losses.CORDON)
    if lost is not None and lost.wanted is not None and not lost.is_reverted:
        return undone(
            situation,
            Code.WRITE_NOT_KEPT,
            f"{losses.sentence({losses.CORDON: lost})}; the node stays in service",
        )
    return undone(
        situation,
        Code.UNCORDONED_BY_HAND,
        f"another client uncordoned the node {when}: the node stays in service",
    )


def halted(
    situation: Situation, code: Code, sentence: str, *, progress: Progress, change: NodeChange = NO_CHANGE
) -> Decision:
    """Move to Failed, keep the claim and mark it as failed in the lock. The next turn repeats a mark that fails."""
    record = replace(progress, failed=code.value, failed_at=situation.mark(), failures=progress.failures + 1)
    then: tuple[Action, ...] = (*mark(situation, code.value), *_message(situation, Occasion.HALTED, sentence))
    return move(
        situation, Status(code, sentence), Transition(Phase.FAILED, record, change=change, then=then, look=LOOK_SECONDS)
    )


def mark(situation: Situation, failed: str) -> tuple[WriteLock, ...]:
    """The write that marks this node's claim as failed, unless the lock has the mark or lacks the claim."""
    content, entry = situation.content, situation.own_entry
    if content is None or entry is None or entry.failed == failed:
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
