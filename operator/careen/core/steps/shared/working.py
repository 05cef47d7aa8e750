"""What every working holder owes the lock and the Node. A claim that is missing is put back, because the node *is*
down, and it is said aloud. A node that is handed back is as it was before its drain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.lock import content as lock
from careen.core.lock.content import LockContent
from careen.core.situation import Situation
from careen.core.writing import NodeChange, as_before, move, stay, with_our_taint, without_our_taint, write_lock


def handed_back(
    situation: Situation,
    *,
    keeps_taint: bool,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
) -> tuple[Progress, NodeChange]:
    """The record and the change of the patch that puts a node back into service; from then on it settles. With
    `keeps_taint` the soft taint stays, because the need goes on."""
    taints, owned = with_our_taint(situation) if keeps_taint else (without_our_taint(situation), "")
    record = replace(
        situation.progress,
        is_cordoned_by_us=False,
        prior_unschedulable=False,
        prior_labels={},
        settle_started=situation.mark(),
        taint_key=owned,
        failures=0,
    )
    return record, as_before(situation, labels=labels, annotations=annotations, taints=taints)


def put_back(situation: Situation) -> Decision | None:
    """The missing entry put back; None when there is nothing to put back or the lock is not understood."""
    content = situation.lock
    if not isinstance(content, LockContent):
        return None
    if situation.own_entry is None:
        entry = situation.new_entry(situation.progress.claim)
        return stay(
            situation,
            Code.ENTRY_PUT_BACK,
            "this node works, and its claim was missing from the lock: put back",
            look=0.0,
            actions=(
                write_lock(
                    situation,
                    "put back the claim of a working node",
                    lock.put_back(content, entry, situation.policy.concurrency),
                ),
            ),
        )
    if situation.reading.object_id != situation.progress.lock:
        return move(
            situation,
            situation.phase,
            Code.ENTRY_PUT_BACK,
            situation.node.annotations.get(keys.REASON, "the claim stands in another lock now"),
            progress=replace(situation.progress, lock=situation.reading.object_id),
        )
    return None


def is_released(situation: Situation) -> bool:
    """Whether the claim was taken out of the very lock it stood in: by us just before a crash, or by a person."""
    content = situation.lock
    return (
        isinstance(content, LockContent)
        and situation.own_entry is None
        and situation.reading.object_id == situation.progress.lock
    )
