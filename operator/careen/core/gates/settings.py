"""This gate refuses to let the node begin its drain while the agent cannot use the newest settings and runs on older
settings. So the agent takes no new claim. If the node is already drained, the gate permits the reboot if the older
settings are complete, and refuses the reboot if they are not."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.reasons import Code
from careen.core.gates.question import ALWAYS, Cost, Gate, When, nothing
from careen.core.situation import Situation


def ask(situation: Situation, when: When) -> Refusal | None:
    """Return a refusal while the agent cannot use the newest settings and runs on older ones. Return no refusal if the
    node is drained and the older settings are complete, so that the node still reboots."""
    policy = situation.policy
    if not policy.settings_problem or (when is When.BEFORE_REBOOT and policy.are_settings_whole):
        return None
    return Refusal(gate=GATE.name, code=Code.SETTINGS_UNUSABLE, sentence=policy.settings_problem)


GATE = Gate(
    name="settings",
    ask=ask,
    when=ALWAYS,
    cost=Cost.CHEAP,
    needs=nothing,
)
