"""Whether an agent may replace itself by the sleeper (`agent/asleep/`) after a turn, and when that must wake it.

The sleeper sees the sentinel files, the own Node and the ConfigMap, and the time. An agent may sleep only if nothing
else can change its next decision. A waiting node's agent reads the lock too often: with 5,000 of them, each look would
begin with a start, and all together would send twice as many requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from careen.core.decision import Decision
from careen.core.facts.memory import Crowd, HolderCheck, Memory, SeenVersions
from careen.core.facts.observation import NeedAnswer, NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.observation import Observation
from scheduler_core.values import Value

BREAK_EVEN_SECONDS = 300.0  # a wake costs a start: up to half a second of processor time and three requests
MOST_SLEEPS = 6
"""In an hour. A Node that somebody changes all the time keeps its agent awake."""
_HOUR_SECONDS = 3600.0


class Rest(Value, kw_only=True):
    """The agent may sleep until the uptime `until`, and remembers `memory`."""

    until: float
    memory: Memory


def may_sleep(
    seen: Observation,
    decision: Decision,
    memory: Memory,
    *,
    slept: Sequence[float],
    next_question: float | None,
) -> Rest | str:
    """`memory` is that after the turn; `slept` are the uptimes at which this agent fell asleep; `next_question` is the
    uptime at which a command or the host's uptime may change the need. A text says why the agent must stay awake."""
    if why := _busy(seen, decision, memory):
        return why
    recent = [at for at in slept if 0 <= seen.uptime - at < _HOUR_SECONDS]
    if len(recent) >= MOST_SLEEPS:
        return f"the agent has slept {len(recent)} times in an hour"
    until = min(each for each in (next_question, memory.lock_due) if each is not None)
    if until - seen.uptime < BREAK_EVEN_SECONDS:
        return "the next look is too soon"
    return Rest(until=until, memory=kept(memory))


def kept(memory: Memory) -> Memory:
    """What saves the woken agent requests and Events. Nothing of it permits an act that a new process may not do."""
    return Memory(
        node_uid=memory.node_uid,
        is_reconciled=memory.is_reconciled,
        lock_due=memory.lock_due,
        agents=memory.agents,
        moves_counted_at=memory.moves_counted_at,
        held=memory.held,
        holder_check=HolderCheck(
            at=memory.holder_check.at,
            overdue=memory.holder_check.overdue,
            holders_not_before=memory.holder_check.holders_not_before,
        ),
        crowd=Crowd(count=memory.crowd.count, until=memory.crowd.until),
        versions=SeenVersions(node=memory.versions.node, lock=memory.versions.lock),
        reported=memory.reported,
    )


def _busy(seen: Observation, decision: Decision, memory: Memory) -> str:
    node = seen.node
    if not isinstance(node, NodeView) or not isinstance(node.record, Progress):
        return "the Node or its record cannot be read"
    if node.is_being_deleted:
        return "the Node is being deleted"
    if decision.wants or decision.actions:
        return "the turn has written something"
    if decision.starts_soon or node.record.claim or node.record.is_releasing:
        return "the node holds a claim or may take one soon"
    if memory.losses.marks or memory.versions.behind_since is not None or memory.patience.since is not None:
        return "a write did not stick, or a fact is missing"
    if memory.holder_check.suspected or (memory.reboot is not None and memory.reboot.may_be_under_way):
        return "a holder is suspected, or a reboot is under way"
    if decision.phase is not Phase.IDLE:
        return f"the phase is {decision.phase}"
    if not memory.is_reconciled or memory.lock_due is None:
        return "the lock and the Node are not compared yet"
    return "" if seen.need.answer is NeedAnswer.NO else "the host may need a reboot"
