"""Refuses while the agent cannot use the newest settings and runs on older ones. A node that is already drained still
reboots if the older settings are complete."""

from __future__ import annotations

from careen.core.facts.reasons import Code
from careen.core.gates.question import Cost, No, When, gate
from careen.core.situation import Situation


@gate("settings", cost=Cost.CHEAP)
def settings(situation: Situation, when: When) -> No | None:
    policy = situation.policy
    if not policy.settings_problem or (when is When.BEFORE_REBOOT and policy.are_settings_whole):
        return None
    return No(Code.SETTINGS_UNUSABLE, policy.settings_problem)
