"""A claim of this node that is in the lock but not in the record: the agent adopts it (writes it into the record and
continues) or releases it.

Such a claim appears when the record was wiped, the Node was recreated, a write to the lock reached the API server late,
or kured left its lock behind. Every agent looks for one when it starts and while its node waits.
"""

from __future__ import annotations

from careen.core.actions import PatchNode
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import RebootMemory, RebootOutcome
from careen.core.facts.observation import NeedAnswer, NodeView
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.progress import Announcement, Progress, is_same_boot
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.lock import changes
from careen.core.lock.content import Entry, LockContent
from careen.core.node import autoscalers, cordons, own_taint
from careen.core.node.restoring import NodeChange
from careen.core.outcomes import Status, Stay, Transition, move, stay, write_lock
from careen.core.people.requests import met_by_this_boot, sentence, to_keep_down
from careen.core.situation import Situation, known
from careen.core.steps.shared import holder_checks
from scheduler_core.values import replace_value as replace

_LOOK_SECONDS = 10.0
_STAYS_UP = frozenset({RebootOutcome.NOT_ASKED, RebootOutcome.FAILED})
_UNREAD_LOOK_SECONDS = 2.0


def decide(situation: Situation) -> Decision | None:
    """Adopt or release such a claim. Without one, remove a cordon that careen left behind."""
    content = situation.content
    if situation.progress.claim or not situation.boot:
        return None
    if content is None:
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
    """Release the lock that kured left behind, and uncordon the node if kured had, as kured does when it starts; but
    not while another reboot coordinator works, or may work, in the cluster, or the node is not ready."""
    if situation.read(Evidence.FOREIGN) != () or not situation.node.ready:
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
    check, uptime = situation.memory.holder_check, situation.seen.uptime
    if check.holders_not_before <= uptime:
        situation.need(Evidence.HOLDERS)
    holders = known(situation.seen.holders)
    if holders is None:
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
        sentence = (
            "the agent released the claim of a deleted Node of the same name: nobody had asked its host to reboot"
        )
        return _release(situation, content, entry, sentence)
    stale = holder_checks.examined(situation, content, holders)
    situation.remember(
        holder_check=replace(check, suspected=stale.suspected, holders_not_before=uptime + _LOOK_SECONDS)
    )
    if entry not in stale.proven:
        return stay(
            situation,
            Status(Code.ENTRY_RELEASED, "the lock has a claim of a deleted Node with this node's name", is_silent=True),
            Stay(look=_LOOK_SECONDS),
        )
    sentence = "the agent removed a claim of this node from the lock: no drain or reboot was under way"
    return _release(situation, content, entry, sentence)


def _release(situation: Situation, content: LockContent, entry: Entry, sentence: str) -> Decision:
    left = changes.remove(content, entry.node, entry.id)
    return stay(
        situation,
        Status(Code.ENTRY_RELEASED, sentence, is_silent=True),
        Stay(look=0.0, actions=(write_lock(situation, "release a claim of which the Node has no record", left),)),
    )


def _is_surely_not_rebooting(situation: Situation, entry: Entry) -> bool:
    """Whether the host certainly does not reboot under this entry of a deleted Node of the same name.

    The host must still run the entry's boot, and this process must have read the claim in the record of the deleted
    Node. A process that started later waits, as for any Node that is gone, because the host may be going down.

    Then the announcements decide, since a process announces a reboot before it asks the host. Without an announcement
    of this process, the last record that it read must have none. With one, it must be the first under the claim, and
    the host was not asked or the reboot command failed.

    A write of this process that is still under way cannot lead to a reboot: it carries the resourceVersion of the
    deleted Node, so the API server rejects it, and after a rejected announcement the process does not ask the host.
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
    """Remove careen's cordon from a ready node without a claim: no other step ever would."""
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
    """The host has rebooted since the node took the claim: verify the node and release the claim as usual."""
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
    """Whether the host may have been asked to reboot under this claim, by this process's memory or the annotations."""
    return situation.phase is not Phase.FAILED and (
        _has_asked(situation.memory.reboot, entry) or says_announced(situation.node)
    )


def says_announced(node: NodeView) -> bool:
    """Whether phase annotation and cordon show that a reboot was announced, even without a record."""
    return node.annotations.get(keys.PHASE) == Phase.REBOOTING and node.unschedulable


def _not_before_it_is_read(situation: Situation) -> Decision | None:
    """Leave a Node unchanged that has no record but may be rebooting, until its claim can be looked up."""
    if situation.phase is not Phase.IDLE or not says_announced(situation.node):
        return None
    sentence = (
        "the node may be about to reboot, but the agent's record is missing, and the agent cannot look up the claim yet"
    )
    return stay(situation, Status(Code.LOCK_UNKNOWN, sentence, is_silent=True), Stay(look=_UNREAD_LOOK_SECONDS))


def _has_asked(asked: RebootMemory | None, entry: Entry) -> bool:
    return asked is not None and asked.claim == entry.id and asked.may_be_under_way


def _adopt_to_reboot(situation: Situation, entry: Entry) -> Decision:
    """The record was wiped shortly before a reboot. The node waits in Rebooting, because an earlier process may have
    asked the host."""
    progress = replace(
        _with_own_taint(situation),
        claim=entry.id,
        lock=situation.reading.object_id,
        boot_left=entry.boot or situation.boot,
        is_cordoned_by_us=cordons.is_ours_under_claim(situation.node, was_cordoned=entry.cordoned),
        announcement=1,
        announced=Announcement(
            boot=situation.boot, uptime=situation.seen.uptime, is_asked=_has_asked(situation.memory.reboot, entry)
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
    """The record was wiped: restore what can be restored, and release the claim. If a person keeps the node down, the
    cordon stays, because that person may be at work on the machine."""
    is_yes = situation.seen.need.answer is NeedAnswer.YES
    progress = replace(
        _with_own_taint(situation),
        claim=entry.id,
        lock=situation.reading.object_id,
        boot_left=entry.boot or situation.boot,
        is_releasing=True,
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
    """The record with the key of careen's soft taint, if the key (`own_taint.by_name`) or the managed fields prove that
    careen set it."""
    progress, wanted = situation.progress, situation.policy.taint_key
    ours = own_taint.keys_of_ours(situation.node, progress, situation.policy)
    return replace(progress, taint_key=wanted) if not progress.taint_key and wanted and wanted in ours else progress
