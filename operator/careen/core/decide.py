"""Decides what a node does in one turn, that is, in one round of the agent's loop (observe, decide, apply): `decide`
calls the step of the node's phase. The steps are the functions in `steps/`, one file per phase."""

from __future__ import annotations

from collections.abc import Callable

from careen.core import own_taint, patience
from careen.core.actions import PatchNode, PostEvent
from careen.core.decision import Decision, Reason
from careen.core.facts import keys
from careen.core.facts.memory import ClaimMemory, Memory, in_phase
from careen.core.facts.observation import (
    Gone,
    LockReading,
    NeedAnswer,
    NodeView,
    NotAsked,
    Observation,
    Unknown,
)
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, UnreadableProgress, is_phase, is_same_boot, phase_of
from careen.core.facts.reasons import Code
from careen.core.lock import overdue
from careen.core.lock.content import Garbage, LockContent
from careen.core.people import asked
from careen.core.situation import Situation
from careen.core.steps import (
    claiming,
    draining,
    failed,
    idle,
    maintenance,
    rebooting,
    recovering,
    settling,
    verifying,
    waiting,
)
from careen.core.steps.shared import holder_checks
from careen.core.writing import Status, Stay, Transition, move, stay, stored_refusals, want
from scheduler_core.values import replace_value as replace

STEPS: dict[Phase, Callable[[Situation], Decision]] = {
    Phase.IDLE: idle.decide,
    Phase.WAITING: waiting.decide,
    Phase.CLAIMING: claiming.decide,
    Phase.DRAINING: draining.decide,
    Phase.MAINTENANCE: maintenance.decide,
    Phase.REBOOTING: rebooting.decide,
    Phase.VERIFYING: verifying.decide,
    Phase.SETTLING: settling.decide,
    Phase.FAILED: failed.decide,
}

_LOOK_SECONDS = 5.0
_RECONCILE_SECONDS = 30.0  # an idle node that has just started reads an unreadable lock again this often


def decide(observation: Observation, policy: Policy) -> Decision:
    """Return the decision of this round of the agent's loop. There is a decision for every observation, even if the
    Node or its record cannot be read."""
    node = observation.node
    if isinstance(node, Unknown):
        return _powerless(observation, Code.NODE_UNKNOWN, f"the Node cannot be read: {node.why}")
    if isinstance(node, Gone):
        return _powerless(observation, Code.NODE_GONE, f"there is no Node {policy.node_name}")
    progress = node.record
    if isinstance(progress, UnreadableProgress):
        return _unreadable(observation, policy, node, progress.why)
    observation = asked.heard(observation, node, progress)
    # By the phase that the Node shows, not by the phase that a decision leads to: the patch may fail.
    memory = in_phase(_memory(observation, node, progress), phase_of(progress))
    situation = Situation(seen=observation, policy=policy, node=node, progress=progress, memory=memory)
    return patience.after(situation, _decide(patience.of_this_turn(situation)))


def _decide(situation: Situation) -> Decision:
    if situation.progress.claim:
        if not situation.boot and not _can_be_undone(situation):
            why = situation.seen.boot_id.why if isinstance(situation.seen.boot_id, Unknown) else ""
            return stay(
                situation, Status(Code.BOOT_ID_UNKNOWN, f"the boot id cannot be read: {why}"), Stay(look=_LOOK_SECONDS)
            )
        if situation.boot and _is_new_boot(situation):
            return maintenance.after_boot(situation) or verifying.begin(situation)
    return _reconcile(situation) or _disown_cordon(situation) or STEPS[situation.phase](situation)


def _can_be_undone(situation: Situation) -> bool:
    """Whether the host has certainly not been asked to reboot under this claim. In that case the agent may release the
    claim even if it cannot read the host's boot id."""
    return situation.progress.is_giving_back or situation.phase in {Phase.CLAIMING, Phase.DRAINING}


def _is_new_boot(situation: Situation) -> bool:
    """Whether the host runs a new boot that the agent has not begun to verify. A boot is new if it is not the boot in
    which the node took its claim. A new boot usually moves the node to the phase Verifying, whatever the node's phase
    is."""
    progress = situation.progress
    is_seen = progress.verify_started is not None and is_same_boot(progress.verify_started.boot, situation.boot)
    return bool(progress.boot_left) and not is_same_boot(situation.boot, progress.boot_left) and not is_seen


def _disown_cordon(situation: Situation) -> Decision | None:
    """Return the decision to record that another client removed careen's cordon while the node was in the phase
    Verifying or Failed. Return None if no client did. Without this record the agent would treat a later cordon by
    another client as careen's."""
    progress = situation.progress
    if (
        not progress.is_cordoned_by_us
        or situation.node.unschedulable
        or situation.phase not in {Phase.VERIFYING, Phase.FAILED}
    ):
        return None
    return move(
        situation,
        Status(
            Code.UNCORDONED_BY_HAND,
            situation.node.annotations.get(keys.REASON, "another client uncordoned the node"),
            refusals=stored_refusals(situation.node),
        ),
        Transition(situation.phase, replace(progress, is_cordoned_by_us=False)),
    )


def _reconcile(situation: Situation) -> Decision | None:
    """Compare the lock with the Node, and return the decision that follows. Return None if none follows, or if the
    comparison is not due.

    The agent compares in every round of its loop that reads the lock. The agent of an idle node reads the lock for this
    purpose after its start, some time after the node released a claim, and from time to time. If the host asks for a
    reboot, the agent of an idle node first sets the soft taint and compares later. If the Node's record was wiped, the
    agent compares first, because the patch with the taint would remove the last traces of the record.
    """
    memory, seen = situation.memory, situation.seen
    if situation.phase is Phase.IDLE:
        is_settled = idle.wants_reboot(situation) or _is_reconciled(memory, seen.uptime)
        if is_settled and not recovering.looks_like_ours(situation):
            return None
        if isinstance(seen.lock, NotAsked):
            # If the Node shows that a reboot was announced, the agent reads the lock even if it read it a moment ago,
            # because the agent's next write would remove the announcement from the Node.
            is_due = memory.holder_check.holders_not_before <= seen.uptime or recovering.says_announced(situation.node)
            return want(situation, Evidence.LOCK) if is_due else None
    found = recovering.decide(situation)
    return _idle_with_lock(situation) if found is None and situation.phase is Phase.IDLE else found


def _idle_with_lock(situation: Situation) -> Decision:
    """Decide for an idle node that has read the lock and holds no claim. The node's agent removes from the line in the
    lock the nodes that no longer wait. It also checks the nodes that hold claims, because perhaps no waiting node is
    left that would check them."""
    looked = idle.tidy_line(situation) or holder_checks.look(situation)
    if isinstance(looked, Decision):
        return looked
    memory, uptime, is_known = looked.memory, situation.seen.uptime, not isinstance(situation.seen.lock, Unknown)
    is_past = memory.lock_due is None or memory.lock_due <= uptime
    due = idle.next_lock_read(looked) if is_known and is_past else memory.lock_due
    check = replace(memory.holder_check, holders_not_before=uptime + _RECONCILE_SECONDS)
    memory = replace(memory, is_reconciled=is_known, lock_due=due, holder_check=check)
    return idle.decide(looked.with_memory(memory))


def _is_reconciled(memory: Memory, uptime: float) -> bool:
    return memory.is_reconciled and (memory.lock_due is None or memory.lock_due > uptime)


def _memory(seen: Observation, node: NodeView, progress: Progress) -> Memory:
    """Return the agent's memory for this Node. If the Node was recreated (another UID), only three things stay in the
    memory: this process's last attempt to reboot the host, the last claim, and the number of agents."""
    memory = seen.memory
    if memory.node_uid != node.uid:
        memory = Memory(node_uid=node.uid, reboot=memory.reboot, held=memory.held, agents=memory.agents)
    if progress.claim:
        memory = replace(memory, held=ClaimMemory(claim=progress.claim, is_announced=progress.announcement > 0))
    if not isinstance(seen.lock, LockReading):
        return memory
    content = seen.lock.content
    late = memory.holder_check.overdue if isinstance(content, Garbage) else _overdue(content)
    agents = memory.agents if seen.lock.agents is None else seen.lock.agents
    return replace(memory, agents=agents, holder_check=replace(memory.holder_check, overdue=late))


def _overdue(content: LockContent) -> tuple[tuple[str, str], ...]:
    return tuple(
        (entry.node, entry.overdue.since) for entry in overdue.holders_overdue(content) if entry.overdue is not None
    )


def _unreadable(observation: Observation, policy: Policy, node: NodeView, why: str) -> Decision:
    """Decide for a Node whose record cannot be read: change nothing that the record may describe, and write on the Node
    what a person can do. If the host needs no reboot, also remove a soft taint (effect PreferNoSchedule) whose key
    proves that careen set it."""
    sentence = f"{why}; careen does nothing until a person runs `kubectl annotate node {node.name} {keys.PROGRESS}-`"
    decision = _powerless(observation, Code.PROGRESS_UNREADABLE, sentence)
    ours = own_taint.by_name(node, policy) if observation.need.answer is NeedAnswer.NO else frozenset()
    taints = own_taint.without(node, ours)
    if taints is None and node.annotations.get(keys.REASON) == sentence:
        return decision
    patch = PatchNode(
        purpose=f"{decision.phase}: {Code.PROGRESS_UNREADABLE}",
        resource_version=node.resource_version,
        annotations={keys.REASON: sentence},
        taints=taints,
    )
    return replace(decision, actions=(patch, *decision.actions))


def _powerless(observation: Observation, code: Code, sentence: str) -> Decision:
    """Return a decision that changes nothing, because the Node or its record cannot be read. If only the record cannot
    be read, an Event reports the reason, but only once."""
    shown = observation.node.annotations.get(keys.PHASE, "") if isinstance(observation.node, NodeView) else ""
    is_news = isinstance(observation.node, NodeView) and observation.memory.reported.code != code.value
    return Decision(
        phase=Phase(shown) if shown and is_phase(shown) else Phase.IDLE,
        reason=Reason(code=code, sentence=sentence),
        memory=replace(
            observation.memory, reported=replace(observation.memory.reported, code=code.value), stranger=None
        ),
        look_again_seconds=_LOOK_SECONDS,
        actions=(PostEvent(code=code, sentence=sentence, is_warning=True),) if is_news else (),
    )
