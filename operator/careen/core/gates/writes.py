"""Refuses while a mark on which decisions rest does not stick on the Node, or the node's claim in the lock: no drain
without a record, no reboot without a claim."""

from __future__ import annotations

from careen.core import losses
from careen.core.facts.reasons import Code
from careen.core.gates.question import Cost, No, gate
from careen.core.situation import Situation


@gate("writes", cost=Cost.CHEAP)
def writes(situation: Situation) -> No | None:
    lost = losses.in_the_way(situation.memory.losses, uptime=situation.seen.uptime)
    return No(Code.WRITE_NOT_KEPT, lost) if lost else None
