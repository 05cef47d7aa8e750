"""The phase Rebooting: the agent announces the reboot on the Node, confirms the claim in the lock, and asks the host.
Also handles a host that does not reboot.

The announcement changes the Node's resourceVersion. So a write that was decided on an older version of the Node (to
undo the drain, for example) gets a conflict. If a person sets a hold that the agent has not seen, the announcement
itself gets the conflict.

The announcement has a random id. Only the process that drew it, and whose patch succeeded, may ask the host: a second
agent process on the node sees that another process made the announcement. The process that asked records that. If this
is not recorded, and the announcement does not change for a few minutes, another process concludes that the announcing
process is dead, and announces the reboot again.
"""

from __future__ import annotations

from careen.core.actions import AskReboot, ConfirmClaim, Notify, Occasion, SilenceAlerts
from careen.core.decision import Decision
from careen.core.drain import baseline, drain_plan, slow_pods
from careen.core.facts.memory import RebootMemory, RebootOutcome, StrangerMemory
from careen.core.facts.observation import NeedAnswer
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Announcement
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.facts.untrusted import short
from careen.core.gates.hold import hold
from careen.core.gates.question import When
from careen.core.node import autoscalers
from careen.core.node.restoring import NodeChange, as_before
from careen.core.outcomes import Status, Stay, Transition, move, stay
from careen.core.people import telling
from careen.core.situation import Situation
from careen.core.steps.shared import failing, history, late_gates, working
from scheduler_core.values import replace_value as replace

LOOK_SECONDS = 2.0
_TELLING_SECONDS = 90.0  # to ask the host and to record that, with an API server that is slow or briefly gone
_CANNOT = (
    "the node must not reboot now, but another process may already have asked the host: the agent undoes nothing "
    "before the reboot deadline"
)


def announce(situation: Situation, code: Code, sentence: str) -> Decision:
    """Announce the reboot, confirm the claim and ask the host, in this order. The alerts about this node are silenced
    first, so that no time is lost between the confirmation and the reboot."""
    if _has_asked(situation):
        return _announced_again(situation)
    progress, by, uptime = situation.progress, situation.seen.chance.claim_id, situation.seen.uptime
    number = progress.announcement + 1
    message = _message(situation)  # before the memory changes: it depends on who announced the reboot before
    situation.remember(
        stranger=None,
        reboot=RebootMemory(
            claim=progress.claim, announcement=number, outcome=RebootOutcome.NOT_ASKED, by=by, at=uptime
        ),
    )
    return move(
        situation,
        Status(code, sentence),
        Transition(
            Phase.REBOOTING,
            replace(
                progress,
                announcement=number,
                announced=Announcement(boot=situation.boot, uptime=uptime, by=by, kernel=_kernel(situation)),
                is_forced=progress.is_forced or code is Code.FORCED,
                owners=baseline.at_reboot(situation),
            ),
            change=NodeChange(annotations=slow_pods.after_success(situation)),
            look=LOOK_SECONDS,
            first=(SilenceAlerts(),) if situation.policy.silences_alerts and number == 1 else (),
            then=(
                ConfirmClaim(claim=progress.claim, node=situation.node.name),
                *message,
                AskReboot(
                    within_seconds=situation.policy.confirm_max_age_seconds,
                    send_before=uptime + stranger_patience_seconds(situation.policy) / 5,
                ),
            ),
        ),
    )


def _announced_again(situation: Situation) -> Decision:
    """Another client took the announcement back after this process had asked the host: write it again, and do not ask
    again."""
    seen = situation.memory.reboot
    assert seen is not None
    announced = Announcement(boot=situation.boot, uptime=seen.at, by=seen.by, kernel=_kernel(situation), is_asked=True)
    progress = replace(situation.progress, announcement=seen.announcement, announced=announced)
    return move(
        situation,
        Status(Code.REBOOT_ASKED, "the host was asked to reboot; another client removed the announcement"),
        Transition(Phase.REBOOTING, progress, look=LOOK_SECONDS),
    )


def _kernel(situation: Situation) -> str:
    return short(situation.node.kernel, history.LONGEST_KERNEL)


def stranger_patience_seconds(policy: Policy) -> float:
    """The seconds for which this process waits until another process that announced the reboot records that it asked.

    A process that is alive asks the host within the first fifth of this time, or not at all. In the other four fifths,
    the reboot command can end and the process can record the result, for which about a minute is planned.
    """
    return min(policy.reboot_command_seconds + _TELLING_SECONDS, policy.reboot_deadline_seconds / 2)


def _message(situation: Situation) -> tuple[Notify, ...]:
    """The message that the node reboots, unless another process announced the reboot before, and so sent it."""
    progress, name = situation.progress, situation.node.name
    is_told = progress.announcement > 0 and _own(situation) is None
    if is_told:
        return ()
    began = progress.drain_started_at
    return (telling.about_reboot(situation, Occasion.REBOOT, f"Rebooting node {name}", since=began),)


def decide(situation: Situation) -> Decision:
    """The reboot is announced, and the host still runs the old boot."""
    own, announced = _own(situation), situation.progress.announced
    is_asked = announced is not None and announced.is_asked
    if own is not None and own.outcome is RebootOutcome.FAILED and not is_asked:
        return failing.undone(
            situation,
            Code.REBOOT_COMMAND_FAILED,
            f"the host did not accept the reboot: {own.detail}",
            tries=situation.progress.tries + 1,
        )
    if (found := working.put_back(situation)) is not None and not _is_called_off(situation):
        return found
    waited = situation.elapsed(announced)
    is_over = waited is None or waited < 0 or waited > situation.policy.reboot_deadline_seconds
    if own is not None and own.outcome is RebootOutcome.NOT_ASKED and not is_asked:
        return _not_asked(situation)
    if is_over:
        return _nothing_happened(situation)
    return _asked(situation) if is_asked or _has_asked(situation) else _another_process_announced(situation)


def _own(situation: Situation) -> RebootMemory | None:
    """What this process remembers of the announcement; None if another process made it."""
    seen, announced = situation.memory.reboot, situation.progress.announced
    is_ours = (
        seen is not None
        and seen.claim == situation.progress.claim
        and seen.announcement == situation.progress.announcement
    )
    return seen if is_ours and seen is not None and seen.by == (announced.by if announced else "") else None


def _has_asked(situation: Situation) -> bool:
    """Whether this process asked the host under this claim, even if another process has announced the reboot since."""
    seen = situation.memory.reboot
    return seen is not None and seen.claim == situation.progress.claim and seen.may_be_under_way


def _asked(situation: Situation) -> Decision:
    """Wait for the reboot, and record on the Node that the host was asked, so that no other process asks again."""
    seen, announced = situation.memory.reboot, situation.progress.announced
    detail = f": {seen.detail}" if seen is not None and seen.outcome is RebootOutcome.UNCLEAR and seen.detail else ""
    sentence = f"the host was asked to reboot{detail}"
    if announced is None or announced.is_asked:
        return stay(situation, Status(Code.REBOOT_ASKED, sentence), Stay(look=LOOK_SECONDS))
    progress = replace(situation.progress, announced=replace(announced, is_asked=True))
    return move(
        situation, Status(Code.REBOOT_ASKED, sentence), Transition(Phase.REBOOTING, progress, look=LOOK_SECONDS)
    )


def _is_called_off(situation: Situation) -> bool:
    refused = hold.ask(situation, When.BEFORE_REBOOT)
    return situation.seen.need.answer is NeedAnswer.NO or (
        refused is not None and refused.code is not Code.LOCK_UNKNOWN
    )


def _not_asked(situation: Situation) -> Decision:
    """This process announced the reboot but certainly did not ask the host, for example because the claim was no longer
    in the lock: undo the drain, or evaluate the gates and announce the reboot again."""
    if found := late_gates.called_off(situation):
        return found
    if not situation.node.unschedulable:
        return failing.uncordoned(situation, "before the reboot")
    if why_not_drained := _why_not_drained(situation):
        return failing.undone(
            situation, Code.LATE_REFUSAL, f"the drain is undone before the host is asked to reboot: {why_not_drained}"
        )
    return late_gates.decide(situation) or announce(
        situation, Code.REBOOT_ANNOUNCED, "the agent begins the reboot again, because it has not asked the host yet"
    )


def _why_not_drained(situation: Situation) -> str:
    """Why the node is no longer drained, for example because of new pods; "" if it still is."""
    if situation.progress.is_forced:
        return ""
    situation.need(Evidence.PODS)
    pods = situation.seen.pods
    if not isinstance(pods, tuple):
        return f"the pods of this node cannot be listed: {pods.why}"
    plan = working.plan_of(situation, pods)
    return "" if plan.is_done else f"these pods are on the node again: {drain_plan.describe(plan, situation.memory)}"


def _another_process_announced(situation: Situation) -> Decision:
    """Another process announced the reboot: the agent was restarted on the same boot, or a second agent runs. This
    process cannot know whether that one asked the host. So it waits a while, then announces the reboot itself, unless
    something forbids the reboot now, for example new pods on the node."""
    stranger = _stranger(situation)
    situation.remember(stranger=stranger)
    left_seconds = stranger.since + stranger_patience_seconds(situation.policy) - situation.seen.uptime
    if left_seconds > 0:
        sentence = "another process of this node's agent began the reboot and may have asked the host"
        return stay(situation, Status(Code.REBOOT_ASKED, sentence), Stay(look=min(LOOK_SECONDS, left_seconds)))
    why_not_drained = _why_not_drained(situation)
    is_left_alone = bool(autoscalers.left_alone(situation.node))
    if _is_called_off(situation) or is_left_alone or why_not_drained or not situation.node.unschedulable:
        return stay(situation, Status(Code.REBOOT_ASKED, _CANNOT), Stay(look=LOOK_SECONDS))
    again = late_gates.decide(situation)
    if again is None:
        return announce(
            situation,
            Code.REBOOT_ANNOUNCED,
            "the agent begins the reboot again, because the earlier process did not record that it asked the host",
        )
    if again.phase is Phase.REBOOTING:
        return again
    return stay(situation, Status(Code.REBOOT_ASKED, _CANNOT, refusals=again.refusals), Stay(look=LOOK_SECONDS))


def _stranger(situation: Situation) -> StrangerMemory:
    """The other process's announcement, with the uptime at which this process first saw it."""
    progress, known = situation.progress, situation.memory.stranger
    by = progress.announced.by if progress.announced else ""
    if known is not None and (known.by, known.announcement) == (by, progress.announcement):
        return known
    return StrangerMemory(by=by, announcement=progress.announcement, since=situation.seen.uptime)


def _nothing_happened(situation: Situation) -> Decision:
    """The deadline is over, or the host has booted with the same boot id. A ready node returns to service, but keeps
    its claim, because the host may still go down."""
    deadline = situation.policy.reboot_deadline_seconds
    code = Code.REBOOT_NOT_HAPPENED
    sentence = f"the host still runs the same boot {span(deadline)} after it was asked to reboot"
    if signs := _signs_of_a_boot(situation):
        code = Code.SAME_BOOT_ID
        sentence = (
            f"the host has the same boot id as before it was asked to reboot, although {signs}: a container such as "
            "LXC shares the boot id of its machine, and a device without a source of randomness may repeat it"
        )
    is_back = situation.node.ready
    progress = replace(situation.progress, is_cordoned_by_us=False, prior_labels={}) if is_back else situation.progress
    return failing.halted(
        situation,
        code,
        sentence,
        progress=progress,
        change=as_before(situation.node, situation.progress, situation.policy) if is_back else NodeChange(),
    )


def _signs_of_a_boot(situation: Situation) -> str:
    """What says that the host has rebooted although its boot id is the same; "" if nothing does. Uptimes only grow
    during one boot; a container has its machine's, so its need counts too."""
    waited = situation.elapsed(situation.progress.announced)
    signs = ["its uptime began again"] if waited is not None and waited < 0 else []
    if situation.seen.need.answer is NeedAnswer.NO:
        signs.append("it no longer asks for a reboot")
    return " and ".join(signs)
