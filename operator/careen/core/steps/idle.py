"""Decides for a node in the phase Idle: when the host asks for a reboot, the agent sets the soft taint on the node at
once, or in a large fleet within a minute. Gates, maintenance windows and the lock do not delay the taint."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NeedAnswer
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339, span
from careen.core.lock import pauses
from careen.core.lock.content import LockContent
from careen.core.node import autoscalers, own_taint
from careen.core.node.restoring import NodeChange, is_as_idle
from careen.core.people import requests
from careen.core.situation import Situation
from careen.core.steps.shared import taint_spread
from careen.core.writing import Status, Stay, Transition, go_home, move, stay, want, write_lock

LOOK_SECONDS = 5.0  # at the sentinel: a file check, and the taint must follow within ten seconds
# An idle node in the line reads the lock about once in this time. So does an idle node that has seen an overdue claim,
# but less often in a large fleet. All other idle nodes together read the lock at most about once in this time.
LOCK_LOOK_SECONDS = 60.0
LEAST_LOCK_LOOK_SECONDS = 300.0  # an idle node reads the lock no more often than its own Node
LEAVING_LOOK_SECONDS = 30.0  # while an autoscaler's taint is on the Node; the taint stays for minutes
LONE_LOCK_LOOK_SECONDS = 3600.0  # for a node that knows of no other agents


def decide(situation: Situation) -> Decision:
    """Return the decision to taint the node if it needs a reboot. Otherwise return the decision to remove marks that an
    earlier agent process left on the Node, or to do nothing."""
    need = situation.seen.need
    leaving = autoscalers.left_alone(situation.node)
    if need.answer is NeedAnswer.YES and leaving:
        return _leave_alone(situation, leaving)
    if need.answer is NeedAnswer.YES:
        return _for_its_moment(situation) or _begin_waiting(situation)
    if need.answer is NeedAnswer.NO:
        situation = situation.with_memory(replace(situation.memory, need_seen_at=None))
    if _has_leftovers(situation):
        return go_home(
            situation, Status(Code.HOME, "the agent removes marks that an earlier agent process left on the Node")
        )
    if need.answer is NeedAnswer.UNKNOWN:
        return stay(
            situation,
            Status(Code.NEED_UNKNOWN, f"careen cannot tell whether the host asks for a reboot: {need.detail}"),
            Stay(look=LOOK_SECONDS),
        )
    return stay(situation, Status(Code.NO_NEED, "the host does not ask for a reboot"), Stay(look=LOOK_SECONDS))


def wants_reboot(situation: Situation) -> bool:
    """Whether the host asks for a reboot and no autoscaler is removing the node."""
    return situation.seen.need.answer is NeedAnswer.YES and not autoscalers.removed_by(situation.node)


def _leave_alone(situation: Situation, why: str) -> Decision:
    """Return the decision to stay in the phase Idle although the host asks for a reboot, because an autoscaler is
    removing the node."""
    if _has_leftovers(situation):
        return go_home(situation, Status(Code.BEING_REMOVED, why))
    return stay(situation, Status(Code.BEING_REMOVED, why), Stay(look=LEAVING_LOOK_SECONDS))


def _for_its_moment(situation: Situation) -> Decision | None:
    """Return the decision to wait before the agent sets the soft taint, because the nodes of a large fleet set their
    taints one after another over a minute. Return None if this wait is over or the fleet is small.

    The agent learns the size of the fleet when it reads the lock. If this process has not yet tried to read the lock,
    return the decision to read the lock. If the size is still unknown afterwards, return None.
    """
    memory, uptime = situation.memory, situation.seen.uptime
    has_looked = memory.is_reconciled or memory.holder_check.holders_not_before > 0
    if not has_looked and situation.seen.lacks(Evidence.LOCK):
        return want(
            situation, Evidence.LOCK
        )  # the process has just started, perhaps because careen is being installed on a whole fleet
    seen_at = uptime if memory.need_seen_at is None else memory.need_seen_at
    seen_for = uptime - seen_at
    left = (
        taint_spread.delay_seconds(situation.node.name, memory.agents, situation.seen.now - timedelta(seconds=seen_for))
        - seen_for
    )
    if left <= 0:
        return None
    return stay(
        situation.with_memory(replace(memory, need_seen_at=seen_at)),
        Status(
            Code.TAINT_SPREAD,
            f"the host asks for a reboot; {memory.agents} agents spread their taints over a minute; this node waits "
            f"{span(round(left))}",
        ),
        Stay(look=left),
    )


def _begin_waiting(situation: Situation) -> Decision:
    """Return the decision to move to the phase Waiting: one patch writes the soft taint, the label and the record on
    the Node."""
    now, waited = rfc3339(situation.seen.now), 0.0
    if situation.memory.need_seen_at is not None:
        waited = situation.seen.uptime - situation.memory.need_seen_at
    taints, owned = own_taint.with_ours(situation.node, situation.progress, situation.policy)
    need_since = rfc3339(situation.seen.now - timedelta(seconds=waited))
    progress = replace(Progress(), need_since=need_since, tainted_at=now if owned else "", taint_key=owned)
    return move(
        situation,
        Status(Code.NEED_SEEN, _what_is_asked(situation)),
        Transition(
            Phase.WAITING,
            progress,
            change=NodeChange(
                taints=taints,
                annotations={keys.NEED: situation.seen.need.detail or None, **_kured_annotations(situation, now)},
            ),
        ),
    )


def _what_is_asked(situation: Situation) -> str:
    need = situation.seen.need
    if need.request is not None:
        return need.detail
    return f"the host asks for a reboot{f': {need.detail}' if need.detail else ''}"


def _kured_annotations(situation: Situation, now: str) -> dict[str, str | None]:
    if not situation.policy.annotate_nodes or keys.KURED_IN_PROGRESS in situation.node.annotations:
        return {}
    return {keys.KURED_IN_PROGRESS: now, keys.KURED_MOST_RECENT: now}


def tidy_line(situation: Situation) -> Decision | None:
    """Return the decision to remove from the line in the lock those nodes that do not wait for a reboot. Examples are
    this node, if its earlier write to leave the line failed, and nodes that no longer exist. Return None if the line
    has no such nodes.

    While a node with a claim is overdue, the agents of many idle nodes read the lock. If each of them listed the
    waiting nodes, the cost would be too high, so each agent then removes only its own node.
    """
    content = situation.lock
    if wants_reboot(situation) or not isinstance(content, LockContent) or content.is_paused or not content.line.names:
        return None
    waiters: object = None
    if not situation.memory.holder_check.overdue:
        if situation.seen.lacks(Evidence.WAITERS):
            return want(situation, Evidence.WAITERS)
        waiters = situation.seen.waiters
    waiting = {node.name for node in waiters} if isinstance(waiters, tuple) else set(content.line.names)
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
    """Return the host's uptime at which the agent of an idle node reads the lock again. Idle nodes check the nodes with
    claims, because at the end of a roll-out perhaps no waiting node is left that would check them."""
    memory, content = situation.memory, situation.lock
    is_named = isinstance(content, LockContent) and situation.node.name in content.line.names
    agents = memory.agents or 1
    if is_named:
        pause = LOCK_LOOK_SECONDS
    elif memory.holder_check.overdue:
        # Each idle node sees the mark of the overdue claim when it next reads the lock. In the end, all idle nodes read
        # the lock at this interval.
        pause = max(LOCK_LOOK_SECONDS, agents / pauses.LOOKS_PER_SECOND)
    else:
        pause = max(LEAST_LOCK_LOOK_SECONDS, LOCK_LOOK_SECONDS * agents) if agents > 1 else LONE_LOCK_LOOK_SECONDS
    return situation.seen.uptime + pause * (0.75 + 0.5 * situation.seen.chance.jitter)


def _has_leftovers(situation: Situation) -> bool:
    node, progress, policy = situation.node, situation.progress, situation.policy
    return bool(requests.removal(situation)) or not is_as_idle(node, progress, policy)
