"""The phase Waiting: the agent evaluates the gates in order. When no gate refuses and the node is next in line, the
agent writes a claim id on the Node."""

from __future__ import annotations

from careen.core.actions import WriteLock
from careen.core.decision import Decision, Refusal, stored_refusals
from careen.core.drain import drain_memory
from careen.core.facts import keys
from careen.core.facts.observation import NeedAnswer
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.gates import asked, missing, refusals
from careen.core.gates.question import Cost, When
from careen.core.lock import clearance, order
from careen.core.lock.pauses import spread_seconds
from careen.core.node import autoscalers, own_taint
from careen.core.node.restoring import NodeChange
from careen.core.outcomes import Status, Stay, Transition, go_home, move, stay, waiting_label, write_lock
from careen.core.people import requests
from careen.core.situation import Situation
from careen.core.steps import line
from careen.core.steps.shared import crowd, holder_checks, release
from careen.core.windows.openings import opens_within, windows_of
from scheduler_core.values import replace_value as replace

# When the need ends, the agent removes its node from the line. After this time the agent reads the lock again: by then
# the write has succeeded or failed.
LEFT_LINE_SECONDS = 5.0
OPENING_SECONDS = 2.0  # by then every node has noticed the open window; the first claim waits longer than this


def decide(situation: Situation) -> Decision:
    """Go home, write the gates' refusals on the Node, wait in line, or take a claim."""
    if situation.progress.is_releasing or situation.progress.claim:
        return release.decide(situation)
    if found := _is_over(situation) or _forgive(situation) or _mend_taint(situation):
        return found
    cheap = asked(When.READY, Cost.CHEAP)
    situation.need(*missing(situation, cheap))
    if found := holder_checks.look(situation):
        return found
    if refused := refusals(situation, cheap, When.READY):
        crowd.look(situation)
        is_halted = all(each.code is Code.HALTED for each in refused)
        return _halted(situation, refused[0]) if is_halted else _refused(situation, refused)
    content = situation.content
    assert content is not None, "the gate `hold` must refuse while the lock is not understood"
    return line.ready(situation, content)


def _is_over(situation: Situation) -> Decision | None:
    if situation.seen.need.answer is NeedAnswer.NO:
        return _go_home(situation, Code.NEED_GONE, requests.why_gone(situation))
    leaving = autoscalers.left_alone(situation.node)
    return _go_home(situation, Code.BEING_REMOVED, leaving) if leaving else None


def _halted(situation: Situation, refused: Refusal) -> Decision:
    """Only the gate `halt` refuses: the node keeps the label `ready` and its place in the line."""
    situation.remember(line=clearance.unwatched(situation.memory).line)
    return stay(
        situation,
        Status(Code.REFUSED, line.with_overdue(situation, refused.sentence), refusals=(refused,), label=order.READY),
        Stay(look=line.refused_pause(situation)),
    )


def _refused(situation: Situation, refused: tuple[Refusal, ...]) -> Decision:
    """Cheap gates refuse: the node leaves the line. Stored refusals of costly gates stay on the Node."""
    situation.remember(line=clearance.unwatched(situation.memory).line)
    return stay(
        situation,
        Status(
            Code.REFUSED,
            line.with_overdue(situation, refused[0].sentence),
            refusals=(*refused, *line.stored_costly(situation.node)),
            label="required",
        ),
        Stay(look=_refused_pause(situation, refused), actions=leave_line(situation)),
    )


def _refused_pause(situation: Situation, refused: tuple[Refusal, ...]) -> float:
    """The usual pause, or a shorter one that ends soon after a maintenance window opens, so that this node is in line
    when the first node takes a claim."""
    usual, jitter = line.refused_pause(situation), situation.seen.chance.jitter
    if all(each.code is not Code.OUTSIDE_WINDOW for each in refused):
        return usual
    windows = windows_of(situation.policy, situation.node.labels)
    opening = opens_within(windows, situation.seen.now, usual)
    if opening is None:
        return usual
    return min(usual, opening + (OPENING_SECONDS + spread_seconds(situation.memory.agents)) * jitter)


def _go_home(situation: Situation, code: Code, sentence: str) -> Decision:
    """Go home, then leave the line. The agent reads the lock once more later, because that write may fail, or the lock
    may be unreadable now."""
    due, soon = situation.memory.lock_due, situation.seen.uptime + LEFT_LINE_SECONDS
    if due is None or due > soon + release.LATE_WRITE_SECONDS:
        situation.remember(lock_due=soon)
    return go_home(situation, Status(code, sentence), then=leave_line(situation))


def leave_line(situation: Situation) -> tuple[WriteLock, ...]:
    """The write by which this node gives up its place in the line: otherwise the others would wait a minute for it. ()
    if the node is not in the line, or if the lock is paused."""
    content, name = situation.content, situation.node.name
    if content is None or content.is_paused or name not in content.line.names:
        return ()
    left = content.with_line(content.line.without(name).one_fewer())
    return (write_lock(situation, f"{name} leaves the line of waiting nodes", left),)


def _forgive(situation: Situation) -> Decision | None:
    if not situation.wants_retry:
        return None
    progress = replace(situation.progress, reboots_for_need=0, tries=0, failures=0)
    return move(
        situation,
        Status(Code.RETRY, "a person asked for a retry", label=waiting_label(situation.node)),
        Transition(
            Phase.WAITING,
            progress,
            change=NodeChange(annotations={keys.RETRY: None, **drain_memory.forgiven(situation.node)}),
        ),
    )


def _mend_taint(situation: Situation) -> Decision | None:
    """Set the soft taint again if another client removed it, or replace it if the settings now name another key."""
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
            label=waiting_label(situation.node),
        ),
        Transition(
            Phase.WAITING,
            replace(situation.progress, taint_key=owned, tainted_at=tainted_at if owned else ""),
            change=NodeChange(taints=taints),
        ),
    )
