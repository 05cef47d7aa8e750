"""How long a fact that the agent needs has been unknown, measured once for all phases.

A step that lacks a gate's fact calls `met`. At the end of the turn, `after` drops the gates whose facts this turn read;
a gate whose facts it did not try to read stays. The measurement ends with the last gate.

A process that sees the node's claim for the first time estimates from the Node how long earlier processes have waited:
otherwise a node whose agent restarts often would wait for ever.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from careen.core.decision import Decision, stored_refusals
from careen.core.facts.memory import Patience
from careen.core.facts.phases import Evidence, Phase
from careen.core.gates import GATES
from careen.core.gates.host_state import host_state
from careen.core.gates.question import When
from careen.core.gates.writes import writes
from careen.core.situation import Situation
from scheduler_core.values import replace_value as replace

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


def met(situation: Situation, gate: str) -> None:
    """Note that a fact which this gate needs is unknown in this turn. A fact of no gate has another name in `_NEEDS`,
    such as `drain`."""
    known = situation.memory.patience
    situation.remember(patience=replace(known, since=began(situation), gates=known.gates | {gate}))


def waits_since(situation: Situation) -> datetime:
    """`began` by the API server's clock, for a refusal's `since` on the Node: the host's clock may be wrong."""
    return situation.server_now - timedelta(seconds=situation.seen.uptime - began(situation))


def begin_turn(situation: Situation) -> frozenset[str]:
    """The gates that earlier turns left, for `after`. During the turn the memory lists only the gates that `met`
    adds."""
    earlier = situation.memory.patience
    situation.remember(patience=replace(earlier, gates=frozenset()))
    return earlier.gates


def after(situation: Situation, decision: Decision, earlier: frozenset[str]) -> Decision:
    """The decision with the gates whose facts are still unknown, and since when. A gate of `earlier` turns stays until
    a turn has read its facts."""
    still = {gate for gate in earlier if not _is_known(situation, gate)}
    unknown = decision.memory.patience.gates | still if decision.phase in _PATIENT else frozenset()
    since = decision.memory.patience.since if unknown else None
    patience = Patience(gates=unknown, since=since, claim=situation.progress.claim)
    return replace(decision, memory=replace(decision.memory, patience=patience))


def _is_known(situation: Situation, gate: str) -> bool:
    if gate == host_state.name:
        return host_state.ask(situation, When.BEFORE_REBOOT) is None
    if gate == writes.name:
        return writes.ask(situation, When.BEFORE_REBOOT) is None
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
