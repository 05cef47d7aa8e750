"""Since when something that must be known is not: one answer for every phase that waits for it.

A step that meets such a fact asks `began` and remembers it with `met`. What is known again is forgotten at the
end of the turn, by `after` alone: a fact counts as known when this very turn has looked at it, so a turn that
had no reason to look does not begin the patience anew. A process that did not see the claim before counts from
what stands on the Node, or agents that are restarted often would wait for ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from careen.core.decision import Decision
from careen.core.facts.memory import Memory, Patience
from careen.core.facts.phases import Evidence, Phase
from careen.core.gates import GATES, host_state
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
    """The uptime since when something that must be known is not; now, if everything was known a turn ago."""
    memory, uptime = situation.memory, situation.seen.uptime
    if memory.patience.since is not None:
        return memory.patience.since
    return uptime if memory.patience.claim == situation.progress.claim else uptime - _told_seconds(situation)


def met(situation: Situation, gate: str) -> Memory:
    """The memory of a turn in which this gate did not know enough; a name of a step's own stands for what no
    gate asks."""
    known = situation.memory.patience
    return replace(situation.memory, patience=replace(known, since=began(situation), gates=known.gates | {gate}))


def told_since(situation: Situation) -> datetime:
    """The same instant for the Node, by the API server's clock: the host's own may be what is wrong."""
    return situation.server_now - timedelta(seconds=situation.seen.uptime - began(situation))


def of_this_turn(situation: Situation) -> Situation:
    """For the steps: the turn has met nothing so far."""
    nothing_yet = replace(situation.memory.patience, gates=frozenset())
    return situation.with_memory(replace(situation.memory, patience=nothing_yet))


def after(situation: Situation, decision: Decision) -> Decision:
    """The decision, with what this turn met and what an earlier one met and nobody has seen known since. Ends
    the patience if that is nothing."""
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


def _told_seconds(situation: Situation) -> float:
    """For how long former processes have waited already, as far as the Node says."""
    if situation.phase is Phase.CLAIMING:
        return _long_claimed_seconds(situation)
    since = [refusal.since for refusal in stored_refusals(situation.node) if refusal.since is not None]
    told = (situation.server_now - min(since)).total_seconds() if since else 0.0
    most = situation.elapsed(situation.progress.drain_started)
    return max(0.0, told if most is None else min(told, most))


def _long_claimed_seconds(situation: Situation) -> float:
    """A claim without a cordon tells nobody since when it waits. One that is as old as a drained node may get
    is not waited with any more."""
    held = (situation.elapsed(situation.progress.claimed) or 0.0) - situation.policy.drain.delay_seconds
    return held if held > situation.policy.unknown_patience_seconds else 0.0
