"""Measures how long a fact that the agent needs has been unknown, with one measurement for all phases.

A step (the function that decides for a node in its phase) may lack a fact that a gate (a condition for a reboot) needs.
The step then calls `met`, which records the name of the gate in the agent's memory. At the end of each round of the
agent's loop, `after` removes the gates whose facts were read in this round. A gate stays if this round did not try to
read its facts. The measurement ends when no gate is left.

When a process sees the node's claim for the first time, it estimates from the Node how long earlier processes have
waited. Otherwise a node whose agent restarts often would wait for ever.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from careen.core.decision import Decision
from careen.core.facts.memory import Memory, Patience
from careen.core.facts.phases import Evidence, Phase
from careen.core.gates import GATES, host_state
from careen.core.gates.question import When
from careen.core.situation import Situation
from careen.core.writing import stored_refusals
from scheduler_core.values import replace_value as replace

_PATIENT = frozenset({Phase.CLAIMING, Phase.DRAINING, Phase.REBOOTING})
_NEEDS = {
    "hold": frozenset({Evidence.LOCK}),
    "drain": frozenset({Evidence.PODS}),
    "owners": frozenset({Evidence.OWNERS}),
    "peers": frozenset({Evidence.PEERS}),
}


def began(situation: Situation) -> float:
    """Return the host's uptime at which the first of the missing facts became unknown. If no fact was missing before
    this round of the agent's loop, return the present uptime, or an earlier uptime if the Node shows that an earlier
    process waited."""
    memory, uptime = situation.memory, situation.seen.uptime
    if memory.patience.since is not None:
        return memory.patience.since
    return uptime if memory.patience.claim == situation.progress.claim else uptime - _earlier_wait_seconds(situation)


def met(situation: Situation, gate: str) -> Memory:
    """Return the agent's memory with the note that a fact which this gate needs is unknown in this round of the agent's
    loop. If the missing fact belongs to no gate, `gate` is another name in `_NEEDS`, such as `drain`."""
    known = situation.memory.patience
    return replace(situation.memory, patience=replace(known, since=began(situation), gates=known.gates | {gate}))


def waits_since(situation: Situation) -> datetime:
    """Return the instant at which the first of the missing facts became unknown. The agent writes this instant on the
    Node. `began` returns the instant as an uptime of the host. This function converts the uptime to the API server's
    time, because the host's clock may be wrong."""
    return situation.server_now - timedelta(seconds=situation.seen.uptime - began(situation))


def of_this_turn(situation: Situation) -> Situation:
    """Empty the memory's list of gates whose facts are unknown, and return the situation with this memory. The agent
    does this at the start of each round of its loop. During the round, `met` adds each gate that lacks a fact to the
    list."""
    nothing_yet = replace(situation.memory.patience, gates=frozenset())
    return situation.with_memory(replace(situation.memory, patience=nothing_yet))


def after(situation: Situation, decision: Decision) -> Decision:
    """Return the decision with a memory that lists the gates whose facts are still unknown, and the uptime at which the
    first of these facts became unknown. A gate stays in the list until a round of the agent's loop has read its facts.
    When the list is empty, the memory has no such uptime."""
    if decision.wants:
        return decision
    still = {gate for gate in situation.memory.patience.gates if not _is_known(situation, gate)}
    unknown = decision.memory.patience.gates | still if decision.phase in _PATIENT else frozenset()
    since = decision.memory.patience.since if unknown else None
    patience = Patience(gates=unknown, since=since, claim=situation.progress.claim)
    return replace(decision, memory=replace(decision.memory, patience=patience))


def _is_known(situation: Situation, gate: str) -> bool:
    if gate == host_state.GATE.name:
        return host_state.ask(situation, When.BEFORE_REBOOT) is None
    needs = _NEEDS.get(gate) or next((each.needs(situation.policy) for each in GATES if each.name == gate), frozenset())
    return all(situation.seen.knows(evidence) for evidence in needs)


def _earlier_wait_seconds(situation: Situation) -> float:
    """Return how long, in seconds, earlier processes of this node's agent have already waited for a missing fact,
    according to the Node."""
    if situation.phase is Phase.CLAIMING:
        return _long_claimed_seconds(situation)
    since = [refusal.since for refusal in stored_refusals(situation.node) if refusal.since is not None]
    told = (situation.server_now - min(since)).total_seconds() if since else 0.0
    most = situation.elapsed(situation.progress.drain_started)
    return max(0.0, told if most is None else min(told, most))


def _long_claimed_seconds(situation: Situation) -> float:
    """Return an estimate of how many seconds earlier processes have waited for a missing fact while the node held its
    claim without a cordon. The estimate is the age of the claim minus --drain-delay, because the Node does not show how
    long a fact was unknown. Return 0 if the estimate is not greater than --unknown-patience."""
    held = (situation.elapsed(situation.progress.claimed) or 0.0) - situation.policy.drain.delay_seconds
    return held if held > situation.policy.unknown_patience_seconds else 0.0
