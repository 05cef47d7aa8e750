"""Decides for a node in the phase Waiting: the agent evaluates the gates (conditions for a reboot) in order. When no
gate refuses and the node is next in line, the agent writes a claim id on the Node."""

from __future__ import annotations

from dataclasses import replace

from careen.core.actions import WriteLock
from careen.core.decision import Decision, Refusal
from careen.core.facts import keys
from careen.core.facts.observation import NeedAnswer, NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.gates import asked, missing, refusals
from careen.core.gates.question import Cost, When
from careen.core.lock import clearance, order
from careen.core.lock.content import LockContent
from careen.core.lock.gathering import spread_seconds
from careen.core.node import autoscalers, own_taint
from careen.core.node.restoring import NodeChange
from careen.core.situation import Situation
from careen.core.steps import line
from careen.core.steps.shared import crowd, giving_back, holder_checks
from careen.core.windows.openings import opens_within, windows_of
from careen.core.writing import Status, Stay, Transition, go_home, move, stay, stored_refusals, want, write_lock

# When the need ends, the agent removes its node from the line. After this time the agent reads the lock again: by then
# the write has succeeded or failed.
LEFT_LINE_SECONDS = 5.0
OPENING_SECONDS = 2.0  # by then every node has noticed the open window; the first claim waits longer than this


def decide(situation: Situation) -> Decision:
    """Return the decision for a waiting node: go to the phase Idle, write the gates' refusals on the Node, wait in
    line, or take a claim."""
    if situation.progress.is_giving_back or situation.progress.claim:
        return giving_back.decide(situation)
    if (over := _is_over(situation)) is not None:
        return over
    if situation.wants_retry:
        return _forgive(situation)
    if (mended := _mend_taint(situation)) is not None:
        return mended
    cheap = asked(When.READY, Cost.CHEAP)
    if lacking := missing(situation, cheap):
        return want(situation, *lacking)
    checked = holder_checks.look(situation)
    if isinstance(checked, Decision):
        return checked
    situation = checked
    refused, content = refusals(situation, cheap, When.READY), situation.lock
    if refused:
        counted = crowd.look(situation)
        if isinstance(counted, Decision):
            return counted
        situation = counted
    if refused and (not isinstance(content, LockContent) or any(each.code is not Code.HALTED for each in refused)):
        return _refused(situation, refused)
    assert isinstance(content, LockContent), (
        "the gate `hold` also checks the lock, and must refuse the reboot if the lock is unreadable"
    )
    return _halted(situation, refused[0]) if refused else line.ready(situation, content)


def _is_over(situation: Situation) -> Decision | None:
    """Return the decision to go to the phase Idle in two cases: an autoscaler is removing the node, or the host no
    longer needs a reboot. Return None in every other case."""
    if situation.seen.need.answer is NeedAnswer.NO:
        return _go_home(situation, Code.NEED_GONE, "the host no longer asks for a reboot")
    leaving = autoscalers.left_alone(situation.node)
    return _go_home(situation, Code.BEING_REMOVED, leaving) if leaving else None


def _halted(situation: Situation, refused: Refusal) -> Decision:
    """Return the decision if only the gate `halt` refuses, because another node failed: the node keeps the label
    `ready` and its place in the line of waiting nodes."""
    memory = clearance.unwatched(situation.memory)
    return stay(
        situation.with_memory(memory),
        Status(Code.REFUSED, line.with_overdue(situation, refused.sentence), refusals=(refused,), label=order.READY),
        Stay(look=line.refused_pause(situation)),
    )


def _refused(situation: Situation, refused: tuple[Refusal, ...]) -> Decision:
    """Return the decision for a node that cheap gates refuse (see `Cost` in `gates/question.py`). The agent writes all
    refusals of the cheap gates on the Node, and removes the node from the line of waiting nodes. Refusals of costly
    gates that are already stored on the Node stay there."""
    memory = clearance.unwatched(situation.memory)
    return stay(
        situation.with_memory(memory),
        Status(
            Code.REFUSED,
            line.with_overdue(situation, refused[0].sentence),
            refusals=(*refused, *line.stored_costly(situation)),
            label="required",
        ),
        Stay(look=_refused_pause(situation, refused), actions=leave_line(situation)),
    )


def _refused_pause(situation: Situation, refused: tuple[Refusal, ...]) -> float:
    """Return for how many seconds the agent pauses after a gate has refused: the usual pause, or a shorter pause if a
    maintenance window opens earlier. The shorter pause ends soon after the opening, so that this node is in line when
    the first node takes a claim."""
    usual, jitter = line.refused_pause(situation), situation.seen.chance.jitter
    if all(each.code is not Code.OUTSIDE_WINDOW for each in refused):
        return usual
    windows = windows_of(situation.policy, situation.node.labels)
    opening = opens_within(windows, situation.seen.now, usual)
    if opening is None:
        return usual
    return min(usual, opening + (OPENING_SECONDS + spread_seconds(situation.memory.agents)) * jitter)


def _go_home(situation: Situation, code: Code, sentence: str) -> Decision:
    """Return the decision to move to the phase Idle: remove from the Node what careen wrote on it for the wait, then
    leave the line of waiting nodes in the lock. The agent reads the lock once more later, because the write may fail or
    the lock may be unreadable now."""
    memory, soon = situation.memory, situation.seen.uptime + LEFT_LINE_SECONDS
    is_due = memory.lock_due is not None and memory.lock_due <= soon + giving_back.LATE_WRITE_SECONDS
    situation = situation.with_memory(memory if is_due else replace(memory, lock_due=soon))
    return go_home(situation, Status(code, sentence), then=leave_line(situation))


def leave_line(situation: Situation) -> tuple[WriteLock, ...]:
    """Return the write of the lock by which this node gives up its place in the line of waiting nodes. Without this
    write, the other nodes would wait a minute for this node. Return nothing if the node is not in the line, or if the
    lock is paused."""
    content, name = situation.lock, situation.node.name
    if not isinstance(content, LockContent) or content.is_paused or name not in content.line.names:
        return ()
    left = content.with_line(content.line.without(name).one_fewer())
    return (write_lock(situation, f"{name} leaves the line of waiting nodes", left),)


def _forgive(situation: Situation) -> Decision:
    """Return the decision to set the counters of reboots, tries and failures to zero, because a person asked for a
    retry."""
    progress = replace(situation.progress, reboots_for_need=0, tries=0, failures=0)
    return move(
        situation,
        Status(Code.RETRY, "a person asked for a retry", label=_label(situation.node)),
        Transition(Phase.WAITING, progress, change=NodeChange(annotations={keys.RETRY: None})),
    )


def _mend_taint(situation: Situation) -> Decision | None:
    """Return the decision to set careen's soft taint again if another client removed it, or to replace the taint if the
    settings now name another key. Return None otherwise."""
    taints, owned = own_taint.with_ours(situation.node, situation.progress, situation.policy)
    if taints is None and owned == situation.progress.taint_key:
        return None
    tainted_at = situation.progress.tainted_at or rfc3339(situation.seen.now)
    return move(
        situation,
        Status(
            Code.NEED_SEEN,
            situation.node.annotations.get(keys.REASON, "the host asks for a reboot"),
            refusals=stored_refusals(situation.node),
            label=_label(situation.node),
        ),
        Transition(
            Phase.WAITING,
            replace(situation.progress, taint_key=owned, tainted_at=tainted_at if owned else ""),
            change=NodeChange(taints=taints),
        ),
    )


def _label(node: NodeView) -> str:
    return "ready" if node.labels.get(keys.REBOOT_LABEL) == "ready" else "required"
