"""Refuses while older settings stand in for those that are meant: what is claimed is finished with them, and
nothing new is begun."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.reasons import Code
from careen.core.gates.question import ALWAYS, Cost, Gate, Unforeseen, When, nothing
from careen.core.situation import Situation


def ask(situation: Situation, when: When) -> Refusal | None:
    """A drain goes on to its reboot with older settings if they are whole: they are the ones that it began
    with."""
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
    foresight=Unforeseen("settings that become unusable"),
)
