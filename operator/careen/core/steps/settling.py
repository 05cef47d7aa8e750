"""The phase Settling: the agent waits until the workloads whose pods the drain evicted are as healthy as before. Then
it releases the claim and names the next nodes in the lock."""

from __future__ import annotations

from datetime import timedelta

from careen.core.actions import Notify, Occasion, WriteLock
from careen.core.decision import Decision
from careen.core.drain import baseline
from careen.core.facts.observation import NeedAnswer, NodeView
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import SettlePolicy
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339, span
from careen.core.gates import loop_limit
from careen.core.lock import changes, order, overdue
from careen.core.lock.content import LockContent
from careen.core.node import own_taint
from careen.core.node.restoring import NodeChange
from careen.core.outcomes import Status, Stay, Transition, go_home, move, stay, without_own_claim, write_lock
from careen.core.people import telling
from careen.core.situation import Situation, known
from careen.core.steps import idle
from careen.core.steps.shared import failing, reboot_report, release, working
from scheduler_core.values import replace_value as replace

_MUCH_LATER_SECONDS = 10.0
_SOON_SECONDS = 2.0  # if the release is this near, the next node would read the instant too late

# The sentence is constant, so that it costs only one patch.
_UNPROVEN_BOOT = "the workloads are healthy; the node keeps its claim a little longer, in case the host reboots again"


def decide(situation: Situation) -> Decision:
    """Release the claim once the workloads are healthy, --lock-release-delay is over and the boot is old enough to be
    stable."""
    if working.is_released(situation):
        return _finish(situation)
    if found := working.put_back(situation):
        return found
    waited = situation.elapsed(situation.progress.settle_started) or 0.0
    if ailing := baseline.what_ails(baseline.due(situation), known(situation.seen.owners)):
        # Nothing is released before the boot is stable, and the workloads may recover until then.
        if waited <= situation.policy.settle_timeout_seconds or _unproven_seconds(situation) > 0:
            return _settle_on(situation, ailing, look=baseline.look_seconds(waited))
        if situation.policy.settle_policy is SettlePolicy.HALT:
            return failing.halted(
                situation,
                Code.SETTLE_TIMEOUT,
                f"{ailing}, {span(round(waited))} after the node came back into service{_dead(situation)}",
                progress=situation.progress,
            )
    if (left := situation.policy.lock_release_delay_seconds - waited) > 0:
        return _settle_on(
            situation,
            "the workloads are healthy; the node waits for --lock-release-delay",
            look=min(left, baseline.SLOW_LOOK_SECONDS),
        )
    if (left := _unproven_seconds(situation)) > 0:
        return _settle_on(situation, _UNPROVEN_BOOT, look=min(left, baseline.SLOW_LOOK_SECONDS))
    return _release(situation)


def _dead(situation: Situation) -> str:
    """A clause about other holders whose hosts look dead: a workload may lack a pod that cannot end there."""
    content = situation.content
    late = overdue.holders_overdue(content, besides=situation.node.name) if content is not None else ()
    dead = [each for each in late if each.overdue and each.overdue.phase in {"", overdue.NOT_READY}]
    return f"; look there first: {overdue.sentences(dead)}" if dead else ""


def _settle_on(situation: Situation, sentence: str, *, look: float) -> Decision:
    """Stay, and record in the lock when the claim will be released, so that the next node can prepare its drain."""
    return stay(situation, Status(Code.SETTLING, sentence), Stay(look=look, actions=_marked_due(situation)))


def _marked_due(situation: Situation) -> tuple[WriteLock, ...]:
    """The write of that instant: once, and again if it changes much because another boot restarted the wait."""
    content, entry = situation.content, situation.own_entry
    if content is None or entry is None:
        return ()
    waited = situation.elapsed(situation.progress.settle_started) or 0.0
    left = max(0.0, situation.policy.lock_release_delay_seconds - waited, _unproven_seconds(situation))
    due, told = situation.server_now + timedelta(seconds=left), from_rfc3339(entry.due)
    is_told = told is not None and (left == 0 or (due - told).total_seconds() < _MUCH_LATER_SECONDS)
    if is_told or 0 < left < _SOON_SECONDS:
        return ()
    marked = changes.mark_due(content, situation.node.name, situation.progress.claim, rfc3339(due))
    return (write_lock(situation, "record in the lock when the claim will be released", marked),)


def _unproven_seconds(situation: Situation) -> float:
    return situation.policy.stable_boot_seconds - situation.seen.uptime


def _release(situation: Situation) -> Decision:
    content = situation.content
    if content is None:
        return release.decide(situation)  # reports why the claim cannot be released, and tries again
    if situation.seen.need.answer is NeedAnswer.YES and loop_limit.is_reached(situation):
        count = situation.progress.reboots_for_need
        return failing.halted(
            situation,
            Code.REBOOT_LOOP,
            f"the host asks for a reboot again after {count} confirmed reboots",
            progress=situation.progress,
        )
    left = _with_next_nodes(situation, content, situation.read(Evidence.WAITERS))
    return _finish(
        situation,
        (write_lock(situation, "release the claim and name the next nodes", left),),
        then=_rollout_done(situation, left),
    )


def _rollout_done(situation: Situation, left: LockContent) -> tuple[Notify, ...]:
    """The message that the roll-out is done, unless other nodes have yet to reboot. Its figures are added when it is
    sent."""
    is_done = (
        bool(situation.progress.verify_started)
        and situation.seen.need.answer is NeedAnswer.NO
        and telling.is_last_of_rollout(situation, left.holders)
    )
    done = Notify(occasion=Occasion.DONE, sentence="Roll-out done", claim=situation.progress.claim)
    return (done,) if is_done else ()


def _with_next_nodes(situation: Situation, content: LockContent, waiters: tuple[NodeView, ...] | None) -> LockContent:
    """The lock without this node's claim, and with the next nodes if the waiting nodes could be listed. With
    --settle-policy=continue it keeps how healthy the workloads were that have not recovered, until the roll-out ends:
    the baselines of the next nodes must not begin with the worse state."""
    left = without_own_claim(situation, content)
    is_over = waiters is not None and not waiters and not left.entries
    owed = baseline.still_owed(left.unsettled, baseline.due(situation), known(situation.seen.owners))
    left = replace(left, unsettled=() if is_over else owed)
    if waiters is None:
        return left  # the names in the lock are still valid
    node, at = situation.node, rfc3339(situation.seen.now)
    return order.name_next(left, waiters, situation.policy, at=at, zone=node.zone, leave_out=node.name)


def _finish(situation: Situation, first: tuple[WriteLock, ...] = (), *, then: tuple[Notify, ...] = ()) -> Decision:
    """Remove the claim from the Node, and everything else of careen if the host no longer needs a reboot. `first` is
    the write that removes the claim from the lock, if the lock still has it."""
    measured = reboot_report.with_settle_seconds(situation)
    if situation.seen.need.answer is NeedAnswer.NO:
        _read_lock_later(situation)
        return go_home(
            situation,
            Status(Code.RELEASED, f"{_how_the_claim_ended(situation.progress)}; the claim is released"),
            first=first,
            then=then,
            annotations=measured,
        )
    taints, owned = (
        own_taint.with_ours(situation.node, situation.progress, situation.policy)
        if situation.seen.need.answer is NeedAnswer.YES
        else (None, situation.progress.taint_key)
    )
    progress = replace(release.without_claim(situation.progress), taint_key=owned)
    if owned and owned != situation.progress.taint_key:
        progress = replace(progress, tainted_at=rfc3339(situation.seen.now))
    return move(
        situation,
        Status(
            Code.RELEASED,
            f"{_how_the_claim_ended(situation.progress)}, but the host asks for another reboot, or the agent cannot "
            "tell whether the host does",
        ),
        Transition(Phase.WAITING, progress, change=NodeChange(taints=taints, annotations=measured), first=first),
    )


def _how_the_claim_ended(progress: Progress) -> str:
    return "the node rebooted" if progress.verify_started else "the node is back in service after maintenance"


def _read_lock_later(situation: Situation) -> None:
    """Put off the next read of the lock if the agent has just listed the waiting nodes and no other node holds a claim:
    the read would show nothing new."""
    is_counted = known(situation.seen.waiters) is not None
    if (
        situation.content is not None
        and is_counted
        and not situation.other_holders
        and situation.memory.lock_due is None
    ):
        situation.remember(is_reconciled=True, lock_due=idle.next_lock_read(situation))
