"""Evaluates the gates (conditions for a reboot) again once the node is drained, and reacts to refusals.

A hold on the node (an annotation by which a person keeps the node from rebooting) or a pause of the lock undoes the
drain. If a fact is unknown, the agent waits, and undoes the drain only after a while, because moving every pod again
costs more than waiting for one missing fact. --late-policy decides about all other refusals. With --late-policy=reboot,
an unknown fact does not stop the reboot either, unless the fact is about the host or the lock.
"""

from __future__ import annotations

from dataclasses import replace

from careen.core import patience
from careen.core.decision import Decision, Refusal
from careen.core.facts.observation import NeedAnswer
from careen.core.facts.phases import Phase
from careen.core.facts.policy import LatePolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.gates import asked, missing
from careen.core.gates.hold import hold
from careen.core.gates.host_state import host_state
from careen.core.gates.question import Gate, When
from careen.core.node import autoscalers
from careen.core.situation import Situation
from careen.core.writing import Status, Stay, Transition, stay, undo, want

_LOOK_SECONDS = 2.0


def decide(situation: Situation) -> Decision | None:
    """Return the decision that follows from the first gate whose refusal stops the reboot of a drained node. Return
    None if the reboot may go on."""
    for gate in asked(When.BEFORE_REBOOT):
        if lacking := missing(situation, (gate,)):
            return want(situation, *lacking)
        refused = gate.ask(situation, When.BEFORE_REBOOT)
        if refused is None:
            continue
        if gate is host_state or refused.code is Code.LOCK_UNKNOWN:
            return wait_patiently(situation, refused)
        if situation.policy.late_policy is LatePolicy.UNDO and _is_unknown(situation, gate):
            return wait_patiently(situation, refused)
        if undoes(gate, situation.policy):
            return undone(situation, refused, _code(refused, is_word=gate is hold))
    return None


def called_off(situation: Situation) -> Decision | None:
    """Return the decision to undo the drain if the host no longer asks for a reboot or an autoscaler is removing the
    node. Return None otherwise."""
    if situation.seen.need.answer is NeedAnswer.NO:
        return undo(
            situation,
            Status(Code.NEED_GONE, "the host no longer asks for a reboot: the drain is undone"),
            Transition(Phase.WAITING, situation.progress),
        )
    if why_left_alone := autoscalers.left_alone(situation.node):
        return undo(
            situation,
            Status(Code.BEING_REMOVED, f"{why_left_alone}; the drain is undone"),
            Transition(Phase.WAITING, situation.progress),
        )
    return None


def undone(situation: Situation, refused: Refusal, code: Code) -> Decision:
    """Return the decision to undo the drain because of this refusal."""
    return undo(
        situation,
        Status(code, f"{refused.sentence}: the drain is undone", refusals=(refused,)),
        Transition(Phase.WAITING, situation.progress),
    )


def undoes(gate: Gate, policy: Policy) -> bool:
    """Whether a refusal of this gate undoes the drain when the node is drained and ready to reboot."""
    return gate is hold or policy.late_policy is LatePolicy.UNDO


def wait_patiently(situation: Situation, refused: Refusal) -> Decision:
    """Return the decision to wait, because a gate refuses while a fact is unknown. If the fact has been unknown for
    longer than --unknown-patience, return the decision to undo the drain."""
    refused = replace(refused, since=patience.waits_since(situation))
    if situation.seen.uptime - patience.began(situation) > situation.policy.unknown_patience_seconds:
        return undo(
            situation,
            Status(
                refused.code,
                f"{refused.sentence}; the refusal lasted too long: the drain is undone",
                refusals=(refused,),
            ),
            Transition(Phase.WAITING, situation.progress),
        )
    memory = patience.met(situation, refused.gate)
    return stay(
        situation.with_memory(memory),
        Status(refused.code, refused.sentence, refusals=(refused,)),
        Stay(look=_LOOK_SECONDS),
    )


def _is_unknown(situation: Situation, gate: Gate) -> bool:
    return not all(situation.seen.knows(evidence) for evidence in gate.needs(situation.policy))


def _code(refused: Refusal, *, is_word: bool) -> Code:
    return refused.code if is_word else Code.LATE_REFUSAL
