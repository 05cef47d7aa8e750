"""How long a fact that the agent needs has been unknown, measured once for all phases.

A step that lacks a gate's fact calls `met`. At the end of the turn, `after` drops the gates whose facts this turn read;
a gate whose facts it did not try to read stays. The measurement ends with the last gate.

A process that sees the node's claim for the first time estimates from the Node how long earlier processes have waited:
otherwise a node whose agent restarts often would wait for ever.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from careen.core.decision import Decision
from careen.core.facts.memory import Memory, Patience
from careen.core.facts.phases import Evidence, Phase
from careen.core.gates import GATES
from careen.core.gates.host_state import host_state
from careen.core.gates.question import When
from careen.core.situation import Situation
from careen.core.writing import stored_refusals

_PATIENT = frozenset({Phase.CLAIMING, Phase.DRAINING, Phase.REBOOTING})
_NEEDS = {
    "hold": frozenset({Evidence.LOCK}),
    "drain": frozenset({Evidence.PODS}),
    "owners": frozenset({Evidence.OWNERS}),
    "peers": frozenset({Evidence.PEERS}),
}


def began(situation: Situation) -> float:
    """The uptime at which the first missing fact became unknown; now if none was missing, or earlier if the Node shows
    that an earlier process waited."""
    memory, uptime = situation.memory, situation.seen.uptime
    if memory.patience.since is not None:
        return memory.patience.since
    return uptime if memory.patience.claim == situation.progress.claim else uptime - _earlier_wait_seconds(situation)


def met(situation: Situation, gate: str) -> Memory:
    """The memory with this gate, whose fact is unknown in this turn. A fact of no gate has another name in `_NEEDS`,
    such as `drain`."""
    known = situation.memory.patience
    return replace(situation.memory, patience=replace(known, since=began(situation), gates=known.gates | {gate}))


def waits_since(situation: Situation) -> datetime:
    """The instant of `began` by the API server's clock, because the host's may be wrong."""
    return situation.server_now - timedelta(seconds=situation.seen.uptime - began(situation))


def of_this_turn(situation: Situation) -> Situation:
    """The situation at the start of a turn: no gate lacks a fact yet."""
    nothing_yet = replace(situation.memory.patience, gates=frozenset())
    return situation.with_memory(replace(situation.memory, patience=nothing_yet))


def after(situation: Situation, decision: Decision) -> Decision:
    """The decision with the gates whose facts are still unknown, and since when."""
    if decision.wants:
        return decision
    still = {gate for gate in situation.memory.patience.gates if not _is_known(situation, gate)}
    unknown = decision.memory.patience.gates | still if decision.phase in _PATIENT else frozenset()
    since = decision.memory.patience.since if unknown else None
    patience = Patience(gates=unknown, since=since, claim=situation.progress.claim)
    return replace(decision, memory=replace(decision.memory, patience=patience))


def _is_known(situation: Situation, gate: str) -> bool:
    if gate == host_state.name:
        return host_state.ask(situation, When.BEFORE_REBOOT) is None
    needs = _NEEDS.get(gate) or next((each.needs(situation.policy) for each in GATES if each.name == gate), frozenset())
    return all(situation.seen.knows(evidence) for evidence in needs)


def _earlier_wait_seconds(situation: Situation) -> float:
    """How long earlier processes of this agent have waited for a fact, by the Node."""
    if situation.phase is Phase.CLAIMING:
        return _long_claimed_seconds(situation)
    since = [refusal.since for refusal in stored_refusals(situation.node) if refusal.since is not None]
    told = (situation.server_now - min(since)).total_seconds() if since else 0.0
    most = situation.elapsed(situation.progress.drain_started)
    return max(0.0, told if most is None else min(told, most))


def _long_claimed_seconds(situation: Situation) -> float:
    """The age of a claim without a cordon, minus --drain-delay, as an estimate of that wait: the Node does not show how
    long a fact was unknown. 0 up to --unknown-patience."""
    held = (situation.elapsed(situation.progress.claimed) or 0.0) - situation.policy.drain.delay_seconds
    return held if held > situation.policy.unknown_patience_seconds else 0.0
