"""The gate that refuses a drain if the agent's self-test has shown that the host could not carry out a reboot
request."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, SelfTest, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.gates.question import When
from careen.core.gates.reboot_way import reboot_way
from tests.careen.core.builders import a_policy, a_progress, a_situation, decided, the_patch

BROKEN = SelfTest(obstacle="the host has no program /sbin/reboot")
UNTAINTED = a_policy(taint_key=None)
LOSSY = SelfTest(warning="the kubelet gets no notice of the shutdown")


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (SelfTest(), None),
        (LOSSY, None),
        (Unknown("the host is slow"), None),
        (BROKEN, Code.REBOOT_IMPOSSIBLE),
    ],
)
def test_the_gate_refuses_the_reboot_only_if_the_self_test_found_an_obstacle(test: Any, expected: Code | None) -> None:
    refused = reboot_way.ask(a_situation(self_test=test), When.READY)
    assert (refused.code if refused else None) is expected


def test_after_a_failed_self_test_a_waiting_node_may_not_claim() -> None:
    record = a_progress(Phase.WAITING)
    assert decided(record, UNTAINTED, self_test=NOT_ASKED).wants == {Evidence.SELF_TEST}
    decision = decided(record, UNTAINTED, self_test=BROKEN)
    assert (decision.phase, [each.code for each in decision.refusals]) == (Phase.WAITING, [Code.REBOOT_IMPOSSIBLE])
    assert the_patch(decision).labels == {keys.REBOOT_LABEL: "required"}


def test_a_claiming_node_returns_to_waiting_and_is_not_cordoned_if_the_self_test_failed() -> None:
    decision = decided(a_progress(Phase.CLAIMING), self_test=BROKEN)
    assert decision.phase is Phase.WAITING
    assert the_patch(decision).unschedulable is None


def test_the_self_test_is_not_repeated_after_the_drain_has_begun() -> None:
    for phase in (Phase.DRAINING, Phase.REBOOTING, Phase.VERIFYING, Phase.SETTLING):
        assert Evidence.SELF_TEST not in decided(a_progress(phase), self_test=NOT_ASKED).wants


def test_a_warning_of_the_self_test_is_written_on_the_node_but_does_not_refuse_the_reboot() -> None:
    record = a_progress(Phase.WAITING)
    decision = decided(record, UNTAINTED, self_test=LOSSY)
    assert decision.refusals == ()
    assert the_patch(decision).annotations[keys.WARNING] == LOSSY.warning
    said = {"label": "ready", "annotations": {keys.WARNING: LOSSY.warning, keys.MOVES: "0"}}
    claimed = decided(record, UNTAINTED, said, self_test=LOSSY)
    assert claimed.phase is Phase.CLAIMING
    assert keys.WARNING not in the_patch(claimed).annotations
    assert the_patch(decided(record, UNTAINTED, said, self_test=SelfTest())).annotations[keys.WARNING] is None
