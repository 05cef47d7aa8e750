"""Evaluates the gates again once the node is drained.

A hold on the node or a pause of the lock undoes the drain. If a fact is unknown, the agent waits, and undoes the drain
only after a while: moving every pod again costs more than one missing fact. --late-policy decides about all other
refusals. With --late-policy=reboot, an unknown fact does not stop the reboot either, unless it is about the host or the
lock.
"""

from __future__ import annotations

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
from careen.core.outcomes import Status, Stay, Transition, stay, undo
from careen.core.situation import Situation
from scheduler_core.values import replace_value as replace

_LOOK_SECONDS = 2.0


def decide(situation: Situation) -> Decision | None:
    """What follows from the first gate whose refusal stops the reboot; None if the reboot may go on."""
    for gate in asked(When.BEFORE_REBOOT):
        situation.need(*missing(situation, (gate,)))
        refused = gate.ask(situation, When.BEFORE_REBOOT)
        if refused is None:
            continue
        if gate is host_state or refused.code is Code.LOCK_UNKNOWN:
            return wait_patiently(situation, refused)
        if situation.policy.late_policy is LatePolicy.UNDO and _is_unknown(situation, gate):
            return wait_patiently(situation, refused)
        if undoes(gate, situation.policy):
            return undone(situation, refused, refused.code if gate is hold else Code.LATE_REFUSAL)
    return None


def called_off(situation: Situation) -> Decision | None:
    """Undo the drain if the host no longer asks for a reboot or an autoscaler is removing the node."""
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
    return undo(
        situation,
        Status(code, f"{refused.sentence}: the drain is undone", refusals=(refused,)),
        Transition(Phase.WAITING, situation.progress),
    )


def undoes(gate: Gate, policy: Policy) -> bool:
    """Whether a refusal of this gate undoes the drain when the node is drained and ready to reboot."""
    return gate is hold or policy.late_policy is LatePolicy.UNDO


def wait_patiently(situation: Situation, refused: Refusal) -> Decision:
    """Wait while a fact is unknown; undo the drain once that lasts longer than --unknown-patience."""
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
    patience.met(situation, refused.gate)
    return stay(
        situation,
        Status(refused.code, refused.sentence, refusals=(refused,)),
        Stay(look=_LOOK_SECONDS),
    )


def _is_unknown(situation: Situation, gate: Gate) -> bool:
    return not all(situation.seen.knows(evidence) for evidence in gate.needs(situation.policy))
