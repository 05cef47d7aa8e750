"""Handles a claim of this node that is in the lock, but not in careen's record on the Node. The agent either adopts the
claim (writes it into the record and continues) or releases it.

Such a claim appears when the record was wiped, the Node was recreated, a write to the lock reached the API server late,
or kured left its lock behind. Every agent checks for such a claim when it starts and while its node waits.
"""

from __future__ import annotations

from dataclasses import replace

from careen.core.actions import PatchNode
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import Memory, RebootOutcome
from careen.core.facts.observation import Holders, NeedAnswer, NodeView
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.progress import Announcement, Progress, is_same_boot
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.lock import changes
from careen.core.lock.content import Entry, LockContent
from careen.core.node import autoscalers, cordons, own_taint
from careen.core.node.restoring import NodeChange
from careen.core.people.requests import met_by_this_boot, sentence, to_keep_down
from careen.core.situation import Situation
from careen.core.steps.shared import holder_checks
from careen.core.writing import Status, Stay, Transition, move, stay, want, write_lock

_LOOK_SECONDS = 10.0
_STAYS_UP = frozenset({RebootOutcome.NOT_ASKED, RebootOutcome.FAILED})
_UNREAD_LOOK_SECONDS = 2.0


def decide(situation: Situation) -> Decision | None:
    """Return the decision about a claim of this node that is in the lock but not in the record on the Node. If the lock
    has no claim of the node, return the decision to remove a cordon that careen left behind. Return None if there is
    nothing to do, or if it is too early to decide."""
    content = situation.lock
    if situation.progress.claim or not situation.boot:
        return None
    if not isinstance(content, LockContent):
        return _not_before_it_is_read(situation)
    entries = content.entries_of(situation.node.name)
    if not entries:
        return _lone_cordon(situation)
    # An own entry that cannot be read in full is handled like kured's.
    return (
        _from_careen(situation, content, entries[0])
        if entries[0].id and not entries[0].unread
        else _from_kured(situation, content, entries[0])
    )


def _from_kured(situation: Situation, content: LockContent, entry: Entry) -> Decision | None:
    """Return the decision to release the lock that kured left behind. If the node was not cordoned when kured took the
    lock, the agent also uncordons the node, as kured does when it starts. Return None if another reboot coordinator
    works in the cluster, if that is unknown, or if the node is not ready."""
    if situation.seen.lacks(Evidence.FOREIGN):
        return want(situation, Evidence.FOREIGN)
    if situation.seen.foreign != () or not situation.node.ready:
        return None
    node = situation.node
    uncordon = PatchNode(purpose="undo kured's cordon", resource_version=node.resource_version, unschedulable=False)
    return stay(
        situation,
        Status(
            Code.ENTRY_RELEASED,
            "kured still held the lock for this node: the agent released the lock"
            if not entry.unread
            else "the agent removed an unreadable entry of this node from the lock",
            is_silent=True,
        ),
        Stay(
            look=0.0,
            actions=(
                *((uncordon,) if node.unschedulable and not entry.cordoned and not entry.unread else ()),
                write_lock(situation, "release the lock that kured left", changes.remove(content, node.name, entry.id)),
            ),
        ),
    )


def _from_careen(situation: Situation, content: LockContent, entry: Entry) -> Decision | None:
    memory, uptime = situation.memory, situation.seen.uptime
    if situation.seen.lacks(Evidence.HOLDERS):
        return (
            want(situation, Evidence.HOLDERS)
            if memory.holder_check.holders_not_before <= uptime
            else _not_before_it_is_read(situation)
        )
    holders = situation.seen.holders
    if not isinstance(holders, Holders):
        return _not_before_it_is_read(situation)
    if any(node.name == entry.node and _is_known(node.annotations, entry) for node in holders.nodes):
        return None  # the record is unreadable, or our copy of the Node is older than the claim id on the Node
    if entry.boot and not is_same_boot(entry.boot, situation.boot):
        return _adopt_to_undo(situation, entry) if _is_kept(situation, entry) else _adopt_after_boot(situation, entry)
    if entry.uid == situation.node.uid and cordons.looks_like_ours(situation.node):
        return (
            _adopt_to_reboot(situation, entry)
            if _may_be_rebooting(situation, entry)
            else _adopt_to_undo(situation, entry)
        )
    if _is_surely_not_rebooting(situation, entry):
        return _release(
            situation,
            content,
            entry,
            "the agent released the claim of a deleted Node of the same name: nobody had asked its host to reboot",
            memory,
        )
    stale = holder_checks.examined(situation, content, holders)
    check = replace(memory.holder_check, suspected=stale.suspected, holders_not_before=uptime + _LOOK_SECONDS)
    memory = replace(memory, holder_check=check)
    if entry not in stale.proven:
        return stay(
            situation.with_memory(memory),
            Status(Code.ENTRY_RELEASED, "the lock has a claim of a deleted Node with this node's name", is_silent=True),
            Stay(look=_LOOK_SECONDS),
        )
    return _release(
        situation,
        content,
        entry,
        "the agent removed a claim of this node from the lock: no drain or reboot was under way",
        memory,
    )


def _release(situation: Situation, content: LockContent, entry: Entry, sentence: str, memory: Memory) -> Decision:
    return stay(
        situation.with_memory(memory),
        Status(Code.ENTRY_RELEASED, sentence, is_silent=True),
        Stay(
            look=0.0,
            actions=(
                write_lock(
                    situation,
                    "release a claim of which the Node has no record",
                    changes.remove(content, entry.node, entry.id),
                ),
            ),
        ),
    )


def _is_surely_not_rebooting(situation: Situation, entry: Entry) -> bool:
    """Whether the host certainly does not reboot under this entry of the lock.

    Three conditions are necessary. The entry belongs to a deleted Node of the same name. The host still runs the boot
    whose id is in the entry. This process has read the claim in the record of the deleted Node. A process that was
    started later has never read that record. Such a process waits, as for any Node that is gone, because the host may
    be going down.

    If the three conditions are met, the announcements decide. An agent process announces a reboot (records on the Node
    that a reboot follows) before the process asks the host to reboot. If this process announced no reboot under the
    claim, the result is true if the record contained no announcement when this process last read the record. If this
    process announced a reboot, the result is true if the record contained no earlier announcement, and this process did
    not ask the host or the reboot command failed. Otherwise the result is false, because this process or another
    process may have asked the host.

    A write of this process may still be under way, for example an announcement. This write cannot lead to a reboot. The
    write contains the resourceVersion of the deleted Node, so the API server will reject the write. After a rejected
    announcement, the process does not ask the host to reboot.
    """
    held, asked = situation.memory.held, situation.memory.reboot
    if (
        not entry.uid
        or entry.uid == situation.node.uid
        or not is_same_boot(entry.boot, situation.boot)
        or held is None
        or held.claim != entry.id
    ):
        return False
    if asked is not None and asked.claim == entry.id:
        return asked.announcement == 1 and asked.outcome in _STAYS_UP
    return not held.is_announced


def _is_known(annotations: object, entry: Entry) -> bool:
    return isinstance(annotations, dict) and entry.id in annotations.get(keys.PROGRESS, "")


def _lone_cordon(situation: Situation) -> Decision | None:
    """Return the decision to remove careen's cordon from a node without a claim, because no other step would ever
    remove that cordon. Return None if careen set no cordon, the node is not ready, or a person keeps the node down."""
    node = situation.node
    if situation.phase not in {Phase.IDLE, Phase.WAITING} or not cordons.is_cordon_proven(node) or not node.ready:
        return None
    if to_keep_down(situation) is not None:
        return None  # a person may be at work on the machine, and the next claim takes the cordon over
    uncordon = PatchNode(
        purpose="remove careen's cordon from a node without a claim",
        resource_version=node.resource_version,
        unschedulable=False,
    )
    return stay(
        situation,
        Status(
            Code.CORDON_LIFTED,
            "careen had cordoned the node, but the node has no claim: the agent removed the cordon",
            is_silent=True,
        ),
        Stay(look=0.0, actions=(uncordon,)),
    )


def _adopt_after_boot(situation: Situation, entry: Entry) -> Decision:
    """Return the decision to adopt this node's claim: the agent writes the claim into the record on the Node. The host
    has rebooted since the node took the claim. The agent then verifies the node and releases the claim as usual."""
    progress = replace(
        _with_own_taint(situation),
        claim=entry.id,
        lock=situation.reading.object_id,
        boot_left=entry.boot,
        is_cordoned_by_us=cordons.is_ours_under_claim(situation.node, was_cordoned=entry.cordoned),
        verify_started=situation.mark(),
        reboots_for_need=situation.progress.reboots_for_need + 1,
    )
    return move(
        situation,
        Status(Code.ENTRY_ADOPTED, "the agent continues a claim that this node took before its last boot"),
        Transition(Phase.VERIFYING, progress, change=NodeChange(annotations=met_by_this_boot(situation))),
    )


def _may_be_rebooting(situation: Situation, entry: Entry) -> bool:
    """Whether the host may have been asked to reboot under this claim: this process remembers that it asked, or the
    Node's annotations still show that a reboot was to follow."""
    return situation.phase is not Phase.FAILED and (_has_asked(situation, entry) or says_announced(situation.node))


def says_announced(node: NodeView) -> bool:
    """Whether the Node's phase annotation and cordon show that the agent asked the host to reboot or was about to ask.
    The Node's record is not used, because it may be missing."""
    return node.annotations.get(keys.PHASE) == Phase.REBOOTING and node.unschedulable


def _not_before_it_is_read(situation: Situation) -> Decision | None:
    """Return the decision to leave the Node unchanged until the agent has found the node's claim in the lock. The agent
    waits like this if the record is missing, but the phase annotation and the cordon still show that a reboot may be
    under way. Otherwise return None."""
    if situation.phase is not Phase.IDLE or not says_announced(situation.node):
        return None
    sentence = (
        "the node may be about to reboot, but the agent's record is missing, and the agent cannot look up the claim yet"
    )
    return stay(situation, Status(Code.LOCK_UNKNOWN, sentence, is_silent=True), Stay(look=_UNREAD_LOOK_SECONDS))


def _has_asked(situation: Situation, entry: Entry) -> bool:
    asked = situation.memory.reboot
    return asked is not None and asked.claim == entry.id and asked.may_be_under_way


def _adopt_to_reboot(situation: Situation, entry: Entry) -> Decision:
    """Return the decision to write the claim into the record on the Node again. The record was wiped shortly before a
    reboot. The node then waits in the phase Rebooting, because an earlier process may have asked the host to
    reboot."""
    progress = replace(
        _with_own_taint(situation),
        claim=entry.id,
        lock=situation.reading.object_id,
        boot_left=entry.boot or situation.boot,
        is_cordoned_by_us=cordons.is_ours_under_claim(situation.node, was_cordoned=entry.cordoned),
        announcement=1,
        announced=Announcement(
            boot=situation.boot, uptime=situation.seen.uptime, is_asked=_has_asked(situation, entry)
        ),
    )
    return move(
        situation,
        Status(
            Code.ENTRY_ADOPTED,
            "the node may be about to reboot, but the agent's record was missing: the agent waits for the reboot",
        ),
        Transition(Phase.REBOOTING, progress),
    )


def _is_kept(situation: Situation, entry: Entry) -> bool:
    """Whether a person wants the node with this claim to stay drained and down."""
    return (
        to_keep_down(situation) is not None
        and entry.uid == situation.node.uid
        and cordons.looks_like_ours(situation.node)
    )


def _adopt_to_undo(situation: Situation, entry: Entry) -> Decision:
    """Return the decision to adopt a claim that is in the lock, but no longer on the Node, because the record was
    wiped. The agent writes the claim into a new record, restores what can be restored, and releases the claim. If a
    person asked to keep the node down, the cordon stays, because that person may be at work on the machine."""
    is_yes = situation.seen.need.answer is NeedAnswer.YES
    progress = replace(
        _with_own_taint(situation),
        claim=entry.id,
        lock=situation.reading.object_id,
        boot_left=entry.boot or situation.boot,
        is_giving_back=True,
        need_since=situation.progress.need_since or (rfc3339(situation.seen.now) if is_yes else ""),
    )
    uncordon = False if cordons.is_ours_under_claim(situation.node, was_cordoned=entry.cordoned) else None
    request, what_happens = to_keep_down(situation), "the agent undoes its changes and releases the claim"
    if request is not None:
        person_asked = sentence(request)
        uncordon, what_happens = None, f"the agent releases the claim, but the cordon stays, because {person_asked}"
    phase = Phase.FAILED if situation.phase is Phase.FAILED else Phase.WAITING
    return move(
        situation,
        Status(Code.ENTRY_ADOPTED, f"the Node had no record of its claim in the lock: {what_happens}"),
        Transition(
            phase,
            progress,
            change=NodeChange(unschedulable=uncordon, annotations=autoscalers.taken_back(situation.node.annotations)),
        ),
    )


def _with_own_taint(situation: Situation) -> Progress:
    """Return the record with the key of careen's soft taint if it is proven that careen set the taint. The proof is
    that the taint has a key of careen (`own_taint.by_name`), or that the API server's managed fields name careen.
    Return the record unchanged without such a proof, or if the record already has a key."""
    progress, wanted = situation.progress, situation.policy.taint_key
    ours = own_taint.keys_of_ours(situation.node, progress, situation.policy)
    return replace(progress, taint_key=wanted) if not progress.taint_key and wanted and wanted in ours else progress
