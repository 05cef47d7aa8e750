"""This gate refuses to let the node begin its drain if the host still asks for a reboot after the allowed number of
confirmed reboots."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, When, nothing
from careen.core.situation import Situation


def is_reached(situation: Situation) -> bool:
    """Whether the node has used up the reboots that --reboot-loop-limit allows: one reboot, and as many repetitions as
    the limit."""
    return situation.progress.reboots_for_need > situation.policy.reboot_loop_limit


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if the host still asks for a reboot and its repeated reboots have reached the limit. careen's
    record on the Node counts the reboots."""
    if not is_reached(situation):
        return None
    count = situation.progress.reboots_for_need
    return Refusal(
        gate=GATE.name,
        code=Code.LOOP_LIMIT,
        sentence=f"the host still asks for a reboot after {count} confirmed reboots; "
        f"{situation.policy.reboot_loop_limit} repeats are allowed",
    )


GATE = Gate(
    name="loop-limit",
    ask=ask,
    when=BEFORE_THE_CORDON,
    cost=Cost.CHEAP,
    needs=nothing,
)
