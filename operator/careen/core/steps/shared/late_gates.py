"""Evaluates the gates again once the node is drained. What a refusal costs depends on whose fault it is.

* An order (a hold, a pause, a closed window, unusable settings) undoes the drain at once and is no failure.
* An unknown fact: the agent waits --unknown-patience, because moving every pod again costs more than one missing fact.
* What the drain caused does not refuse: the gates `alerts` and `health-queries` pass it.
* A gate annotation set since the claim is another program's hook: the agent waits an hour for its removal.
* Everything else is foreign: the agent waits ten minutes for its end.

When such a wait is over, the drain has failed: it is undone, and tried again after a back-off. Refusals end that after
three tries; unknown facts do not, but no node undoes more than three drains a day.
With --late-policy=reboot only a hold, a pause, and unknown facts about the host or the lock stop the reboot.
"""

from __future__ import annotations

from careen.core import patience
from careen.core.decision import Decision, Refusal
from careen.core.drain.late import known_at_the_claim, learned_queries
from careen.core.facts.observation import NeedAnswer
from careen.core.facts.phases import Phase
from careen.core.facts.policy import LatePolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.gates import alerts as alert_gate
from careen.core.gates import asked, missing
from careen.core.gates import health_queries as query_gate
from careen.core.gates.gate_annotations import gate_annotations
from careen.core.gates.hold import hold
from careen.core.gates.host_state import host_state
from careen.core.gates.maintenance_window import maintenance_window
from careen.core.gates.question import Gate, When
from careen.core.gates.settings import settings
from careen.core.node import autoscalers
from careen.core.node.restoring import NodeChange
from careen.core.outcomes import Status, Stay, Transition, move, stay, undo
from careen.core.people import requests
from careen.core.situation import Situation
from careen.core.steps.shared import failing, working
from scheduler_core.values import replace_value as replace

FOREIGN_SECONDS = 600.0  # an alert of another node's reboot, or of an exporter that moved, is over by then
HOOK_SECONDS = 3600.0  # a backup or a failover that began during the drain

_LOOK_SECONDS = 2.0
_LONGEST_LOOK_SECONDS = 15.0  # each look reads the Node, the lock and the pods
_ORDERS = (hold, settings, maintenance_window)
_PARTLY_UNKNOWN = frozenset({Code.HEALTH_UNKNOWN})  # one of several answers is missing


def decide(situation: Situation) -> Decision | None:
    """What follows from the first gate whose refusal stops the reboot; None if the reboot may go on."""
    for gate in sorted(asked(When.BEFORE_REBOOT), key=lambda each: each not in _ORDERS):
        situation.need(*missing(situation, (gate,)))
        refused = gate.ask(situation, When.BEFORE_REBOOT)
        if refused is None:
            continue
        if gate is host_state or refused.code is Code.LOCK_UNKNOWN:
            return wait_patiently(situation, refused)
        if not undoes(gate, situation.policy):
            continue
        if _is_unknown(situation, gate) or refused.code in _PARTLY_UNKNOWN:
            return wait_patiently(situation, refused)
        if gate in _ORDERS:
            return undone(situation, refused, refused.code if gate is hold else Code.LATE_REFUSAL)
        return _wait(situation, refused, "hook" if gate is gate_annotations else "foreign")
    return None


def passed(situation: Situation) -> str:
    """What the reason of a reboot adds: alerts and queries that do not refuse because the drain caused them."""
    if situation.policy.late_policy is not LatePolicy.UNDO:
        return ""
    clauses = (alert_gate.passed_late(situation), query_gate.passed_late(situation))
    return "".join(f"; {clause}" for clause in clauses if clause)


def called_off(situation: Situation) -> Decision | None:
    """Undo the drain if the host no longer asks for a reboot or an autoscaler is removing the node."""
    if situation.seen.need.answer is NeedAnswer.NO:
        return undo(
            situation,
            Status(Code.NEED_GONE, f"{requests.why_gone(situation)}: the drain is undone"),
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
    """Undo the drain because of an order: the node waits for its end and has not failed."""
    return undo(
        situation,
        Status(code, f"{refused.sentence}: the drain is undone", refusals=(refused,)),
        Transition(Phase.WAITING, situation.progress),
    )


def undoes(gate: Gate, policy: Policy) -> bool:
    """Whether a refusal of this gate undoes the drain when the node is drained and ready to reboot."""
    return gate is hold or policy.late_policy is LatePolicy.UNDO


def wait_patiently(situation: Situation, refused: Refusal) -> Decision:
    """Wait while a fact is unknown; the drain fails once that lasts longer than --unknown-patience."""
    refused = replace(refused, since=patience.waits_since(situation))
    if situation.seen.uptime - patience.began(situation) > situation.policy.unknown_patience_seconds:
        # An outage is nobody's refusal: it costs a back-off, and no try.
        return _failed(
            situation, f"{refused.sentence}; the refusal lasted too long: the drain is undone", is_refused=False
        )
    patience.met(situation, refused.gate)
    return stay(
        situation,
        Status(refused.code, refused.sentence, refusals=(refused,)),
        Stay(look=_LOOK_SECONDS),
    )


def _wait(situation: Situation, refused: Refusal, what: str) -> Decision:
    """Wait for the end of this refusal. The begin of the wait is on the Node, so a restart does not extend it, and one
    refusal that follows another of its class does not either."""
    kept = known_at_the_claim.of(situation)
    longest = HOOK_SECONDS if what == "hook" else _foreign_seconds(situation)
    began = kept.waits.get(what)
    if began is not None and began > situation.seen.uptime:
        began = None  # not the agent's own writing
    waited = situation.seen.uptime - began if began is not None else 0.0
    if waited > longest:
        return _failed(situation, f"{refused.sentence}, for {span(longest)} after the drain: the drain is undone")
    status = Status(
        refused.code, f"the node is drained and waits up to {span(longest)}: {refused.sentence}", refusals=(refused,)
    )
    look = min(max(_LOOK_SECONDS, waited / 8), _LONGEST_LOOK_SECONDS)
    if began is not None:
        return stay(situation, status, Stay(look=look))
    change = NodeChange(annotations=known_at_the_claim.waiting(situation, kept, what))
    return move(situation, status, Transition(situation.phase, situation.progress, change=change, look=look))


def _foreign_seconds(situation: Situation) -> float:
    """Two drained nodes may wait for each other's alerts. The one with the younger claim gives way, early enough for
    the other to see its alerts end."""
    return FOREIGN_SECONDS / 2 if working.older_claims(situation) else FOREIGN_SECONDS


def _failed(situation: Situation, sentence: str, *, is_refused: bool = True) -> Decision:
    return failing.undone(
        situation,
        Code.LATE_REFUSAL,
        sentence,
        tries=situation.progress.tries + is_refused,
        change=NodeChange(annotations=learned_queries.opened(situation, query_gate.bad_late(situation))),
    )


def _is_unknown(situation: Situation, gate: Gate) -> bool:
    return not all(situation.seen.knows(evidence) for evidence in gate.needs(situation.policy))
