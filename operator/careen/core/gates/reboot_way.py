"""Refuses while the self-test shows that the agent cannot reboot the host: a drain would move the pods for nothing.

Unlike other gates, this one permits an unknown: many ways to reboot cannot be tested beforehand, and the reboot shows
whether they work.
"""

from __future__ import annotations

from careen.core.facts.observation import RequestKind, SelfTest
from careen.core.facts.phases import Evidence
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.situation import Situation


@gate(
    "reboot-way",
    when=BEFORE_THE_CORDON,
    cost=Cost.CHEAP,
    needs={Evidence.SELF_TEST},
)
def reboot_way(situation: Situation) -> No | None:
    test, request = situation.seen.self_test, situation.seen.need.request
    if request is not None and request.kind is not RequestKind.REBOOT:
        return None  # the request needs no reboot
    if not isinstance(test, SelfTest) or not test.obstacle:
        return None
    return No(Code.REBOOT_IMPOSSIBLE, test.obstacle)
