"""Refuses after three drains that were undone within a day, whatever the cause: each moved every pod of the node in
vain.

The phase Failed and the pauses of slow pods wait too; this gate holds where neither applies, such as a drain without
slow pods after three for slow pods, or a need that ended and came back.
"""

from __future__ import annotations

from datetime import datetime

from careen.core.drain import drain_memory
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


def _ends(node: NodeView, _policy: Policy) -> datetime | None:
    return drain_memory.of(node).day_ends


@gate("undone-drains", when=BEFORE_THE_CORDON, cost=Cost.COSTLY, ends=_ends)
def undone_drains(situation: Situation) -> No | None:
    memory = drain_memory.of(situation.node)
    until = memory.enough_until(situation.server_now)
    if until is None:
        return None
    stuck = first_few(sorted(owner for owner, known in memory.known.items() if known.undone))
    never, because = ("never (seen): ", f" because pods of {stuck} did not leave") if stuck else ("", "")
    return No(
        Code.UNDONE_DRAINS,
        f"{never}{drain_memory.MOST_UNDONE} drains were undone within a day{because}; the next try is at "
        f"{rfc3339(until)}",
        f"`careen retry {situation.node.name}` tries at once",
        ends=until,
    )
