"""One turn's decision: `decide` calls the step of the node's phase (`steps/`, one file per phase)."""

from __future__ import annotations

from collections.abc import Callable

from careen.core import losses, patience, rollback
from careen.core.actions import PatchNode, PostEvent
from careen.core.decision import Decision, Reason, stored_refusals
from careen.core.facts import keys
from careen.core.facts.memory import ClaimMemory, Costly, Crowd, HolderCheck, Memory, in_phase
from careen.core.facts.observation import Gone, NeedAnswer, NodeView, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, UnreadableProgress, is_phase, is_same_boot, phase_of
from careen.core.facts.reasons import Code
from careen.core.lock import overdue
from careen.core.lock.content import Garbage, LockContent
from careen.core.node import cordons, own_taint
from careen.core.observation import Observation
from careen.core.outcomes import Status, Stay, Transition, move, stay, want
from careen.core.people import requests
from careen.core.situation import Notebook, NotRead, Situation, known
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
    """There is a decision for every observation, even if the Node or its record cannot be read."""
    node = observation.node
    if isinstance(node, Unknown):
        return _powerless(observation, Code.NODE_UNKNOWN, f"the Node cannot be read: {node.why}")
    if isinstance(node, Gone):
        return _powerless(observation, Code.NODE_GONE, f"there is no Node {policy.node_name}")
    phase = phase_of(node.record) if isinstance(node.record, Progress) else Phase.IDLE
    restored = rollback.check(observation, node, phase, policy)
    decision = restored.decision or _of_kept(observation, policy, node)
    return replace(decision, memory=replace(decision.memory, versions=restored.versions))


def _of_kept(observation: Observation, policy: Policy, node: NodeView) -> Decision:
    """The decision about a Node whose writes may not stick."""
    known = losses.after_read(observation.memory.losses, node, observation.lock, uptime=observation.uptime)
    before = replace(observation.memory, losses=known)
    node_as_kept = losses.as_if_kept(node, known, uptime=observation.uptime)
    decision = losses.put_back(before, node) or _of_node(
        replace(observation, memory=before, node=node_as_kept), policy, node_as_kept
    )
    if decision.wants:
        return decision
    phase = phase_of(node.record) if isinstance(node.record, Progress) else decision.phase
    return losses.held_back(decision, before, node, phase, uptime=observation.uptime)


def _of_node(observation: Observation, policy: Policy, node: NodeView) -> Decision:
    progress = node.record
    if isinstance(progress, UnreadableProgress):
        return _unreadable(observation, policy, node, progress.why)
    observation = requests.as_need(observation, node, progress)
    # By the phase that the Node shows, not by the phase that a decision leads to: the patch may fail.
    notebook = Notebook(in_phase(_memory(observation, node, progress), phase_of(progress)))
    situation = Situation(seen=observation, policy=policy, node=node, progress=progress, notebook=notebook)
    earlier = patience.begin_turn(situation)
    try:
        return patience.after(situation, _decide(situation), earlier)
    except NotRead as missing:
        return want(situation, missing.kinds)


def _decide(situation: Situation) -> Decision:
    if situation.progress.claim:
        if not situation.boot and not _can_be_undone(situation):
            why = situation.seen.boot_id.why if isinstance(situation.seen.boot_id, Unknown) else ""
            return stay(
                situation, Status(Code.BOOT_ID_UNKNOWN, f"the boot id cannot be read: {why}"), Stay(look=_LOOK_SECONDS)
            )
        if situation.boot and _is_new_boot(situation):
            return maintenance.after_boot(situation) or verifying.begin(situation)
    return (
        _recheck(situation) or _reconcile(situation) or _disown_cordon(situation) or STEPS[situation.phase](situation)
    )


def _recheck(situation: Situation) -> Decision | None:
    """`careen recheck`: forget pauses and old answers, so that the next turn, which follows at once, asks everything
    anew. The removal of the annotation tells the person that the agent looks."""
    if not requests.asks_for_recheck(situation.node):
        return None
    situation.remember(
        costly=Costly(),
        prepared=None,
        crowd=Crowd(),
        lock_due=None,
        is_reconciled=False,
        holder_check=HolderCheck(overdue=situation.memory.holder_check.overdue),
    )
    patch = PatchNode(
        purpose="look again, as a person asked",
        resource_version=situation.node.resource_version,
        annotations={keys.RECHECK: None},
    )
    return stay(
        situation,
        Status(Code.RECHECK, "a person asked the agent to look again", is_silent=True),
        Stay(look=0.0, actions=(patch,)),
    )


def _can_be_undone(situation: Situation) -> bool:
    """Whether the host has certainly not been asked to reboot under this claim. Its release then needs no boot id."""
    return situation.progress.is_releasing or situation.phase in {Phase.CLAIMING, Phase.DRAINING}


def _is_new_boot(situation: Situation) -> bool:
    """Whether the host runs another boot than the one that took the claim, and the agent has not begun to verify it."""
    progress = situation.progress
    is_seen = progress.verify_started is not None and is_same_boot(progress.verify_started.boot, situation.boot)
    return bool(progress.boot_left) and not is_same_boot(situation.boot, progress.boot_left) and not is_seen


def _disown_cordon(situation: Situation) -> Decision | None:
    """Record that another client removed careen's cordon in Verifying or Failed. Otherwise the agent would treat a
    later cordon by another client as careen's."""
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
    """Compare the lock with the Node, in every turn that reads the lock.

    The agent of an idle node reads the lock for this purpose after its start, some time after the node released a
    claim, and from time to time. If the host asks for a reboot, the soft taint goes first. But if the record was wiped,
    the comparison goes first: the patch with the taint would remove the last traces of the record.
    """
    if situation.phase is not Phase.IDLE:
        return recovering.decide(situation)
    memory, uptime = situation.memory, situation.seen.uptime
    is_settled = idle.wants_reboot(situation) or _is_reconciled(memory, uptime)
    if is_settled and not cordons.looks_like_ours(situation.node):
        return None
    # If the Node shows that a reboot was announced, read the lock even if that happened a moment ago: the agent's next
    # write would remove the announcement from the Node.
    is_due = memory.holder_check.holders_not_before <= uptime or recovering.says_announced(situation.node)
    if situation.seen.lacks(Evidence.LOCK) and not is_due:
        return None
    situation.need(Evidence.LOCK)
    return recovering.decide(situation) or _idle_with_lock(situation)


def _idle_with_lock(situation: Situation) -> Decision:
    """An idle node without a claim that has read the lock tidies the line and checks the holders: perhaps no waiting
    node is left that would."""
    if found := idle.tidy_line(situation) or holder_checks.look(situation):
        return found
    memory, uptime, is_known = situation.memory, situation.seen.uptime, known(situation.seen.lock) is not None
    is_past = memory.lock_due is None or memory.lock_due <= uptime
    due = idle.next_lock_read(situation) if is_known and is_past else memory.lock_due
    check = replace(memory.holder_check, holders_not_before=uptime + _RECONCILE_SECONDS)
    situation.remember(is_reconciled=is_known, lock_due=due, holder_check=check)
    return idle.decide(situation)


def _is_reconciled(memory: Memory, uptime: float) -> bool:
    return memory.is_reconciled and (memory.lock_due is None or memory.lock_due > uptime)


def _memory(seen: Observation, node: NodeView, progress: Progress) -> Memory:
    """The agent's memory for this Node. After a change of the UID only the last attempt to reboot the host, the last
    claim and the number of agents stay."""
    memory = seen.memory
    if memory.node_uid != node.uid:
        memory = Memory(node_uid=node.uid, reboot=memory.reboot, held=memory.held, agents=memory.agents)
    if progress.claim:
        memory = replace(memory, held=ClaimMemory(claim=progress.claim, is_announced=progress.announcement > 0))
    if (reading := known(seen.lock)) is None:
        return memory
    content = reading.content
    late = memory.holder_check.overdue if isinstance(content, Garbage) else _overdue(content)
    agents = memory.agents if reading.agents is None else reading.agents
    return replace(memory, agents=agents, holder_check=replace(memory.holder_check, overdue=late))


def _overdue(content: LockContent) -> tuple[tuple[str, str], ...]:
    return tuple(
        (entry.node, entry.overdue.since) for entry in overdue.holders_overdue(content) if entry.overdue is not None
    )


def _unreadable(observation: Observation, policy: Policy, node: NodeView, why: str) -> Decision:
    """Change nothing that the record may describe, and write on the Node what a person can do. If the host needs no
    reboot, also remove a soft taint whose key proves that careen set it."""
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
    """Change nothing. If only the record cannot be read, one Event says why."""
    node, told = observation.node, observation.memory.reported
    shown = node.annotations.get(keys.PHASE, "") if isinstance(node, NodeView) else ""
    is_news = isinstance(node, NodeView) and told.code != code.value
    return Decision(
        phase=Phase(shown) if shown and is_phase(shown) else Phase.IDLE,
        reason=Reason(code=code, sentence=sentence),
        memory=replace(observation.memory, reported=replace(told, code=code.value), stranger=None),
        look_again_seconds=_LOOK_SECONDS,
        actions=(PostEvent(code=code, sentence=sentence, is_warning=True),) if is_news else (),
    )
