"""This gate refuses to let the node begin its drain or its reboot while another reboot coordinator works in the
cluster, such as a kured with running pods or with a live lock."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import ALWAYS, Cost, Gate, When
from careen.core.situation import Situation


def needs(_policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs: the other reboot coordinators that the agent found in the cluster."""
    return frozenset({Evidence.FOREIGN})


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if the cluster has another reboot coordinator, or if that is unknown. Two coordinators do not
    see which nodes the other takes down, so they cannot keep a common limit."""
    foreign = situation.seen.foreign
    if isinstance(foreign, (Unknown, NotAsked)):
        why = foreign.why if isinstance(foreign, Unknown) else "no agent has searched for other coordinators"
        return _no(f"careen cannot tell whether another reboot coordinator works in this cluster: {why}")
    return _no("; ".join(foreign)) if foreign else None


def _no(sentence: str) -> Refusal:
    return Refusal(gate=GATE.name, code=Code.FOREIGN_COORDINATOR, sentence=sentence)


GATE = Gate(
    name="foreign-coordinator",
    ask=ask,
    when=ALWAYS,
    cost=Cost.COSTLY,
    needs=needs,
)
