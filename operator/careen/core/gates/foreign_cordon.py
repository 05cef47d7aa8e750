"""With --reboot-cordoned=false, this gate refuses to let the node begin its drain while the node has a cordon that
careen did not set.

By default careen drains and reboots such a node too, and leaves it cordoned. kured does the same.
"""

from __future__ import annotations

from careen.core import cordons
from careen.core.decision import Refusal
from careen.core.facts.reasons import Code
from careen.core.gates.maintenance_window import is_waived
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, When, nothing
from careen.core.situation import Situation


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if another client cordoned the node and no person asked for its reboot (annotation
    careen.dev/reboot-now)."""
    node = situation.node
    if situation.policy.reboot_cordoned or not cordons.is_foreign(node) or is_waived(node, situation.seen.now):
        return None
    sentence = f"the node is cordoned by {cordons.foreign_author(node)}, not by careen, and --reboot-cordoned is false"
    return Refusal(gate=GATE.name, code=Code.CORDONED, sentence=sentence)


GATE = Gate(
    name="foreign-cordon",
    ask=ask,
    when=BEFORE_THE_CORDON,
    cost=Cost.CHEAP,
    needs=nothing,
)
