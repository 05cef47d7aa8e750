"""Refuses while another reboot coordinator works in the cluster, such as a kured with running pods or a live lock. Two
coordinators do not see which nodes the other takes down, so they cannot keep a common limit."""

from __future__ import annotations

from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.reasons import Code
from careen.core.gates.question import Cost, No, gate
from careen.core.situation import Situation


@gate("foreign-coordinator", cost=Cost.COSTLY, needs={Evidence.FOREIGN})
def foreign_coordinator(situation: Situation) -> No | None:
    foreign = situation.seen.foreign
    if isinstance(foreign, (Unknown, NotAsked)):
        why = foreign.why if isinstance(foreign, Unknown) else "no agent has searched for other coordinators"
        sentence = f"careen cannot tell whether another reboot coordinator works in this cluster: {why}"
        return No(Code.FOREIGN_COORDINATOR, sentence)
    return No(Code.FOREIGN_COORDINATOR, "; ".join(foreign)) if foreign else None
