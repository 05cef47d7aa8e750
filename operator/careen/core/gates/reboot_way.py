"""This gate refuses to let the node begin its drain while the self-test shows that the agent cannot reboot the host. A
drain would then move the pods for nothing."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.observation import SelfTest, Wish
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, When
from careen.core.situation import Situation


def needs(_policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs: the result of the self-test."""
    return frozenset({Evidence.SELF_TEST})


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if the self-test found an obstacle. If the result of the self-test is unknown, this gate does
    not refuse, unlike other gates: many ways to reboot cannot be tested beforehand, and the reboot shows whether they
    work."""
    test, request = situation.seen.self_test, situation.seen.need.request
    if request is not None and request.wish is not Wish.REBOOT:
        return None  # the request needs no reboot
    if not isinstance(test, SelfTest) or not test.obstacle:
        return None
    return Refusal(gate=GATE.name, code=Code.REBOOT_IMPOSSIBLE, sentence=test.obstacle)


GATE = Gate(
    name="reboot-way",
    ask=ask,
    when=BEFORE_THE_CORDON,
    cost=Cost.CHEAP,
    needs=needs,
)
