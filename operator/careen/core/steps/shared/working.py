"""What an agent does in every phase in which careen works on its node. The agent puts the node's claim back into the
lock if the claim is missing there, because the node *is* down. At the end the agent restores what the Node had before
the drain."""

from __future__ import annotations

from dataclasses import replace

from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.lock import changes
from careen.core.lock.content import LockContent
from careen.core.node import own_taint
from careen.core.node.restoring import NodeChange, as_before
from careen.core.situation import Situation
from careen.core.writing import Status, Stay, Transition, move, stay, write_lock


def back_in_service(situation: Situation, besides: NodeChange, *, keeps_taint: bool) -> tuple[Progress, NodeChange]:
    """Return two parts of the patch that puts the node back into service and moves it to the phase Settling: the new
    record, and the other changes of the Node.

    `besides` has further changes for the patch. With `keeps_taint` the soft taint stays, because the node still needs a
    reboot.
    """
    ours = situation.node, situation.progress, situation.policy
    taints, owned = own_taint.with_ours(*ours) if keeps_taint else (own_taint.without_ours(*ours), "")
    record = replace(
        situation.progress,
        is_cordoned_by_us=False,
        prior_unschedulable=False,
        prior_labels={},
        settle_started=situation.mark(),
        taint_key=owned,
        failures=0,
    )
    return record, replace(as_before(*ours, besides), taints=taints)


def put_back(situation: Situation) -> Decision | None:
    """Return the decision to put this node's missing claim back into the lock. If the claim is in another lock object
    than the record says, return the decision to correct the record. Return None if neither is needed, or if the lock
    cannot be understood."""
    content = situation.lock
    if not isinstance(content, LockContent):
        return None
    if situation.own_entry is None:
        entry = situation.new_entry(situation.progress.claim)
        return stay(
            situation,
            Status(Code.ENTRY_PUT_BACK, "the claim of this node was missing from the lock: the agent put it back"),
            Stay(
                look=0.0,
                actions=(
                    write_lock(
                        situation,
                        "put the missing claim of this node back",
                        changes.put_back(content, entry, situation.policy.concurrency),
                    ),
                ),
            ),
        )
    if situation.reading.object_id != situation.progress.lock:
        return move(
            situation,
            Status(
                Code.ENTRY_PUT_BACK,
                situation.node.annotations.get(keys.REASON, "the claim is in another lock object now"),
            ),
            Transition(situation.phase, replace(situation.progress, lock=situation.reading.object_id)),
        )
    return None


def is_released(situation: Situation) -> bool:
    """Whether this agent (just before a crash) or a person removed this node's claim from the lock object that
    contained it."""
    content = situation.lock
    return (
        isinstance(content, LockContent)
        and situation.own_entry is None
        and situation.reading.object_id == situation.progress.lock
    )
