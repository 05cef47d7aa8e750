"""The phase Idle: when the host asks for a reboot, the agent sets the soft taint at once, or in a large fleet within a
minute. Gates, maintenance windows and the lock do not delay the taint."""

from __future__ import annotations

from datetime import timedelta

from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import Need, NeedAnswer, NodeView
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339, span
from careen.core.lock import pauses
from careen.core.node import autoscalers, own_taint
from careen.core.node.restoring import NodeChange, is_as_idle
from careen.core.outcomes import Status, Stay, Transition, go_home, move, stay, write_lock
from careen.core.people import requests
from careen.core.situation import Situation
from careen.core.steps.shared import stagger
from scheduler_core.values import replace_value as replace

LOOK_SECONDS = 5.0  # at the sentinel: a file check, and the taint must follow within ten seconds
# An idle node in the line reads the lock about once in this time. So does an idle node that has seen an overdue claim,
# but less often in a large fleet. All other idle nodes together read the lock at most about once in this time.
LOCK_LOOK_SECONDS = 60.0
LEAST_LOCK_LOOK_SECONDS = 300.0  # an idle node reads the lock no more often than its own Node
FREE_LOCK_LOOK_SECONDS = 1200.0  # of a lock without holders: a claim that comes later has its own agent and the line
LEAVING_LOOK_SECONDS = 30.0  # while an autoscaler's taint is on the Node; the taint stays for minutes
LONE_LOCK_LOOK_SECONDS = 3600.0  # for a node that knows of no other agents


def decide(situation: Situation) -> Decision:
    """Taint a node that needs a reboot, remove marks that an earlier agent process left, or do nothing."""
    need = situation.seen.need
    leaving = autoscalers.left_alone(situation.node)
    if need.answer is NeedAnswer.YES and leaving:
        return _leave_alone(situation, leaving)
    if need.answer is NeedAnswer.YES:
        return _for_its_moment(situation) or _begin_waiting(situation)
    if need.answer is NeedAnswer.NO:
        situation.remember(need_seen_at=None)
    if _has_leftovers(situation):
        return go_home(situation, _what_goes(situation))
    if need.answer is NeedAnswer.UNKNOWN:
        return stay(
            situation,
            Status(Code.NEED_UNKNOWN, f"careen cannot tell whether the host asks for a reboot: {need.detail}"),
            Stay(look=LOOK_SECONDS),
        )
    return stay(situation, Status(Code.NO_NEED, "the host does not ask for a reboot"), Stay(look=LOOK_SECONDS))


def _what_goes(situation: Situation) -> Status:
    if unknown := requests.not_understood(situation.node):
        return Status(Code.REQUEST_UNKNOWN, unknown)
    return Status(Code.HOME, "the agent removes marks that an earlier agent process left on the Node")


def wants_reboot(situation: Situation) -> bool:
    """Whether the host asks for a reboot and no autoscaler is removing the node."""
    return situation.seen.need.answer is NeedAnswer.YES and not autoscalers.removed_by(situation.node)


def _leave_alone(situation: Situation, why: str) -> Decision:
    """The host asks for a reboot, but an autoscaler is removing the node."""
    if _has_leftovers(situation):
        return go_home(situation, Status(Code.BEING_REMOVED, why))
    return stay(situation, Status(Code.BEING_REMOVED, why), Stay(look=LEAVING_LOOK_SECONDS))


def _for_its_moment(situation: Situation) -> Decision | None:
    """Wait for this node's moment, in a large fleet that staggers its taints.

    The size of the fleet comes with the lock. A process that has not yet tried to read the lock does so first; without
    a known size the node does not wait.
    """
    memory, uptime = situation.memory, situation.seen.uptime
    if not memory.is_reconciled and memory.holder_check.holders_not_before <= 0:
        situation.need(Evidence.LOCK)  # a new process, perhaps because careen is being installed on a whole fleet
    seen_at = uptime if memory.need_seen_at is None else memory.need_seen_at
    seen_for = uptime - seen_at
    since = situation.seen.now - timedelta(seconds=seen_for)
    left = stagger.delay_seconds(situation.node.name, memory.agents, since) - seen_for
    if left <= 0:
        return None
    situation.remember(need_seen_at=seen_at)
    return stay(
        situation,
        Status(
            Code.TAINT_SPREAD,
            f"the host asks for a reboot; {memory.agents} agents spread their taints over a minute; this node waits "
            f"{span(round(left))}",
        ),
        Stay(look=left),
    )


def _begin_waiting(situation: Situation) -> Decision:
    """One patch writes the soft taint, the label and the record."""
    now, waited = rfc3339(situation.seen.now), 0.0
    if situation.memory.need_seen_at is not None:
        waited = situation.seen.uptime - situation.memory.need_seen_at
    taints, owned = own_taint.with_ours(situation.node, situation.progress, situation.policy)
    need_since = rfc3339(situation.seen.now - timedelta(seconds=waited))
    progress = replace(Progress(), need_since=need_since, tainted_at=now if owned else "", taint_key=owned)
    return move(
        situation,
        Status(Code.NEED_SEEN, _what_is_asked(situation.seen.need)),
        Transition(
            Phase.WAITING,
            progress,
            change=NodeChange(
                taints=taints,
                annotations={
                    keys.NEED: situation.seen.need.detail or None,
                    **_kured_annotations(situation.node, situation.policy, now),
                },
            ),
        ),
    )


def _what_is_asked(need: Need) -> str:
    if need.request is not None:
        return need.detail
    return f"the host asks for a reboot{f': {need.detail}' if need.detail else ''}"


def _kured_annotations(node: NodeView, policy: Policy, now: str) -> dict[str, str | None]:
    if not policy.annotate_nodes or keys.KURED_IN_PROGRESS in node.annotations:
        return {}
    return {keys.KURED_IN_PROGRESS: now, keys.KURED_MOST_RECENT: now}


def tidy_line(situation: Situation) -> Decision | None:
    """Remove the nodes that no longer wait from the line: this one, if its own write failed, or deleted ones.

    While a holder is overdue, many idle agents read the lock. Lists of the waiting nodes would then cost too much, so
    each agent removes only its own node.
    """
    content = situation.content
    if wants_reboot(situation) or content is None or content.is_paused or not content.line.names:
        return None
    waiters = None if situation.memory.holder_check.overdue else situation.read(Evidence.WAITERS)
    waiting = {node.name for node in waiters} if waiters is not None else set(content.line.names)
    left = content.with_line(content.line.keeping(waiting - {situation.node.name}))
    if left == content:
        return None
    gone = ", ".join(sorted({*content.line.names} - {*left.line.names}))
    return stay(
        situation,
        Status(Code.NO_NEED, "the host does not ask for a reboot", is_silent=True),
        Stay(
            look=LOOK_SECONDS,
            actions=(write_lock(situation, f"remove nodes from the line because they do not wait: {gone}", left),),
        ),
    )


def next_lock_read(situation: Situation) -> float:
    """The uptime at which an idle node's agent reads the lock again. At the end of a roll-out perhaps no waiting node
    is left that would check the holders."""
    memory, content = situation.memory, situation.content
    is_named = content is not None and situation.node.name in content.line.names
    agents = memory.agents or 1
    if is_named:
        pause = LOCK_LOOK_SECONDS
    elif memory.holder_check.overdue:
        # Each idle node sees the mark of the overdue claim when it next reads the lock. In the end, all idle nodes read
        # the lock at this interval.
        pause = max(LOCK_LOOK_SECONDS, agents / pauses.LOOKS_PER_SECOND)
    else:
        is_free = content is not None and not content.entries
        least = FREE_LOCK_LOOK_SECONDS if is_free else LEAST_LOCK_LOOK_SECONDS
        pause = max(least, LOCK_LOOK_SECONDS * agents) if agents > 1 else LONE_LOCK_LOOK_SECONDS
    return situation.seen.uptime + pause * (0.75 + 0.5 * situation.seen.chance.jitter)


def _has_leftovers(situation: Situation) -> bool:
    node, progress, policy = situation.node, situation.progress, situation.policy
    return bool(requests.removal(situation)) or not is_as_idle(node, progress, policy)
