"""Refuses if the host still asks for a reboot after the allowed number of confirmed reboots (--reboot-loop-limit)."""

from __future__ import annotations

from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.situation import Situation


def is_reached(situation: Situation) -> bool:
    """Whether the node has used up its reboots: one, and as many repetitions as the limit."""
    return situation.progress.reboots_for_need > situation.policy.reboot_loop_limit


@gate(
    "loop-limit",
    when=BEFORE_THE_CORDON,
    cost=Cost.CHEAP,
)
def loop_limit(situation: Situation) -> No | None:
    if not is_reached(situation):
        return None
    count, limit = situation.progress.reboots_for_need, situation.policy.reboot_loop_limit
    return No(
        Code.LOOP_LIMIT,
        f"the host still asks for a reboot after {count} confirmed reboots; {limit} repeats are allowed",
    )
