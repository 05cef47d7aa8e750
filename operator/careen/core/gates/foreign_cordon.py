"""With --reboot-cordoned=false, refuses while the node has a cordon that careen did not set.

By default careen drains and reboots such a node too, and leaves it cordoned, as kured does.
"""

from __future__ import annotations

from careen.core.facts.reasons import Code
from careen.core.gates.maintenance_window import is_waived
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.node import cordons
from careen.core.situation import Situation


@gate("foreign-cordon", when=BEFORE_THE_CORDON, cost=Cost.CHEAP)
def foreign_cordon(situation: Situation) -> No | None:
    node = situation.node
    if situation.policy.reboot_cordoned or not cordons.is_foreign(node) or is_waived(node, situation.seen.now):
        return None
    author = cordons.foreign_author(node)
    return No(Code.CORDONED, f"the node is cordoned by {author}, not by careen, and --reboot-cordoned is false")
