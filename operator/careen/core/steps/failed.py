"""The phase Failed, after a failure of the drain or the reboot.

Undone: the host certainly stays up. The agent has restored the node, releases the claim, and tries again after a
back-off.

Halted: the agent keeps the claim until a person acts or the host runs a new boot. Until then no other node begins its
drain, so no other node meets the same failure.
"""

from __future__ import annotations

from careen.core.actions import PostEvent
from careen.core.decision import Decision
from careen.core.drain import baseline, drain_memory
from careen.core.drain.late import learned_queries
from careen.core.facts import keys
from careen.core.facts.observation import NeedAnswer
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, boot_id_of, is_same_boot
from careen.core.facts.reasons import Code
from careen.core.node.restoring import NodeChange, as_before
from careen.core.outcomes import Status, Stay, Transition, go_home, move, stay, undo
from careen.core.people import requests
from careen.core.situation import Situation
from careen.core.steps import verifying
from careen.core.steps.shared import failing, release, working
from scheduler_core.values import replace_value as replace

COMMAND_PAUSES = 5  # times the usual pause: each try drains a node, and a command that fails once usually fails again
_TRIED_AGAIN = frozenset(
    {
        Code.DRAIN_TIMEOUT,
        Code.SLOW_PODS,
        Code.UNCORDONED_BY_HAND,
        Code.WRITE_NOT_KEPT,
        Code.REBOOT_COMMAND_FAILED,
        Code.TURN_BROKEN,
        Code.LATE_REFUSAL,
    }
)
_LEARNING_LOOK_SECONDS = 5.0  # the next node's drain may turn the query bad again soon


def decide(situation: Situation) -> Decision:
    """Finish the release of the claim, return a node that has become ready to service, or wait: for the end of the
    back-off, for a person's retry, or until a person releases the claim."""
    if situation.progress.is_releasing:
        return release.decide(situation)
    if _can_return_to_service(situation):
        return _return_to_service(situation)
    return _halted(situation) if situation.progress.claim else _released(situation)


def _code(progress: Progress) -> Code:
    try:
        return Code(progress.failed)
    except ValueError:
        return Code.PROGRESS_UNREADABLE


def _can_return_to_service(situation: Situation) -> bool:
    """Whether careen cordoned the node, and the node is ready on the host's present boot."""
    node = situation.node
    return situation.progress.is_cordoned_by_us and node.ready and node.boot_id == boot_id_of(situation.boot)


def _return_to_service(situation: Situation) -> Decision:
    """Uncordon the node and restore its labels, but keep the claim."""
    progress = replace(situation.progress, is_cordoned_by_us=False, prior_unschedulable=False, prior_labels={})
    return move(
        situation,
        Status(_code(situation.progress), _sentence(situation)),
        Transition(
            Phase.FAILED,
            progress,
            look=failing.LOOK_SECONDS,
            change=as_before(situation.node, situation.progress, situation.policy),
        ),
    )


def _sentence(situation: Situation) -> str:
    return situation.node.annotations.get(keys.REASON) or _code(situation.progress).meaning


def _halted(situation: Situation) -> Decision:
    """Keep the claim until a person releases it or asks for a retry. After a reboot loop, unhealthy workloads or a node
    that was not ready in time, the agent also continues when the cause is gone."""
    code = _code(situation.progress)
    if working.is_released(situation):
        progress = _unlocked(situation.progress)
        return move(
            situation,
            Status(Code.UNLOCKED_BY_HAND, _sentence(situation)),
            Transition(Phase.FAILED, progress, look=failing.LOOK_SECONDS),
        )
    if found := working.put_back(situation):
        return found
    if situation.wants_retry:
        return _retry(situation, code)
    if mark := failing.mark(situation, situation.progress.failed):
        return stay(situation, Status(code, _sentence(situation)), Stay(look=failing.LOOK_SECONDS, actions=mark))
    if code is Code.REBOOT_LOOP and situation.seen.need.answer is NeedAnswer.NO:
        return undo(
            situation,
            Status(Code.NEED_GONE, f"{requests.why_gone(situation)}: the claim is released"),
            Transition(Phase.WAITING, situation.progress),
        )
    if code is Code.NEVER_READY and situation.node.ready and _still_runs_boot_left(situation):
        return _ready_after_all(situation)
    if code is Code.SETTLE_TIMEOUT:
        owners = situation.read(Evidence.OWNERS)
        if not baseline.what_ails(baseline.due(situation), owners):
            progress = replace(situation.progress, failed="", failed_at=None)
            return move(
                situation,
                Status(Code.SETTLING, "the displaced workloads became healthy after all"),
                Transition(Phase.SETTLING, progress),
            )
    return stay(situation, Status(code, _sentence(situation)), Stay(look=failing.LOOK_SECONDS))


def _ready_after_all(situation: Situation) -> Decision:
    """Return a node that became ready without a reboot to service, and wait until the workloads are healthy."""
    goes_on = situation.seen.need.answer is NeedAnswer.YES
    record, change = working.back_in_service(situation, NodeChange(), keeps_taint=goes_on)
    return move(
        situation,
        Status(Code.SETTLING, "the node became ready after all"),
        Transition(Phase.SETTLING, replace(record, failed="", failed_at=None), change=change),
    )


def _still_runs_boot_left(situation: Situation) -> bool:
    """Whether there is no new boot to verify since the node took its claim."""
    return is_same_boot(situation.boot, situation.progress.boot_left)


def _unlocked(before: Progress) -> Progress:
    """The record without the claim, but with the fields that are still needed to restore the node."""
    return replace(
        release.without_claim(before),
        is_cordoned_by_us=before.is_cordoned_by_us,
        prior_unschedulable=before.prior_unschedulable,
        prior_labels=before.prior_labels,
    )


def _retry(situation: Situation, code: Code) -> Decision:
    """A person asked for a retry: verify a new boot again. On the old boot, or after a reboot loop, undo everything."""
    if not _still_runs_boot_left(situation) and code is not Code.REBOOT_LOOP:
        return verifying.again(situation)
    progress = replace(situation.progress, reboots_for_need=0, tries=0, failures=0, failed="", failed_at=None)
    return undo(
        situation,
        Status(Code.RETRY, "a person asked for a retry"),
        Transition(
            Phase.WAITING,
            progress,
            change=NodeChange(annotations={keys.RETRY: None, **drain_memory.forgiven(situation.node)}),
        ),
    )


def _released(situation: Situation) -> Decision:
    """A failed node without a claim goes home without a need, or tries again after the back-off or a person's retry."""
    code, progress = _code(situation.progress), situation.progress
    if progress.is_cordoned_by_us:
        return stay(situation, Status(code, _sentence(situation)), Stay(look=failing.LOOK_SECONDS))
    if situation.seen.need.answer is NeedAnswer.NO:
        return go_home(situation, Status(Code.NEED_GONE, requests.why_gone(situation)))
    if situation.wants_retry:
        fresh = replace(progress, reboots_for_need=0, tries=0, failures=0, failed="", failed_at=None)
        return move(
            situation,
            Status(Code.RETRY, "a person asked for a retry"),
            Transition(
                Phase.WAITING,
                fresh,
                change=NodeChange(annotations={keys.RETRY: None, **drain_memory.forgiven(situation.node)}),
            ),
        )
    if found := _learning(situation, code):
        return found
    if not is_tried_again(progress, situation.policy):
        return stay(situation, Status(code, _sentence(situation)), Stay(look=failing.LOOK_SECONDS))
    waited = situation.elapsed(progress.failed_at)
    left = backoff_seconds(progress, situation.policy) - waited if waited is not None else 0.0
    until = drain_memory.of(situation.node).enough_until(situation.server_now)
    if until is not None and code is not Code.SLOW_PODS:  # then the gates say more
        left = max(left, (until - situation.server_now).total_seconds())
    if left > 0:
        return stay(situation, Status(code, _sentence(situation)), Stay(look=min(left, failing.LOOK_SECONDS)))
    return move(
        situation,
        Status(Code.RETRY, f"the agent tries the reboot again after the failure {code.value}"),
        Transition(Phase.WAITING, replace(progress, failed="", failed_at=None)),
    )


def _learning(situation: Situation, code: Code) -> Decision | None:
    """Watch the health queries that were good before the drain and bad after it: one that becomes good soon after the
    undo was bad because of the drain, and does not refuse after the next one."""
    queries = learned_queries.open_queries(situation) if code is Code.LATE_REFUSAL else ()
    if not queries:
        return None
    situation.need(Evidence.QUERIES)
    good = [each for each in queries if learned_queries.are_good(situation, each)]
    status = Status(code, _sentence(situation))
    if not good:
        return stay(situation, status, Stay(look=_LEARNING_LOOK_SECONDS))
    learned = NodeChange(annotations=learned_queries.learned(situation, good))
    told = tuple(
        PostEvent(code=Code.HEALTH_QUERY_LEARNED, sentence=learned_queries.told(situation, each), is_warning=False)
        for each in good
    )
    return move(
        situation,
        status,
        Transition(Phase.FAILED, situation.progress, change=learned, then=told, look=_LEARNING_LOOK_SECONDS),
    )


def is_tried_again(progress: Progress, policy: Policy) -> bool:
    """Whether the agent tries again after this failure without a person's request."""
    return progress.failed in _TRIED_AGAIN and progress.tries < policy.reboot_tries


def backoff_seconds(progress: Progress, policy: Policy) -> float:
    """The pause before the next try. It doubles with each failure in a row, up to the limit. After a drain with slow
    pods, the gates know how much longer it lasts: they see when a budget changes."""
    if progress.failed == Code.SLOW_PODS:
        return drain_memory.FIRST_PAUSE_SECONDS
    pauses = COMMAND_PAUSES if progress.failed == Code.REBOOT_COMMAND_FAILED else 1
    return min(
        pauses * policy.failure_backoff_seconds * 2.0 ** min(max(1, progress.failures) - 1, 20),
        policy.failure_backoff_limit_seconds,
    )
