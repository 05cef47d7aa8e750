"""Cordons that were not set by careen (`careen.core.node.cordons`). The tests show when a node with such a cordon is
treated as down, when the cordon forbids this node's reboot, and which message the agent writes."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.gates.budgets import budgets, others_down
from careen.core.gates.foreign_cordon import foreign_cordon
from careen.core.gates.question import When
from careen.core.lock.content import LockContent
from careen.core.node import cordons
from tests.careen.core.builders import a_fleet, a_marked_node, a_node, a_policy, a_progress, a_situation, decided

LEFT_ALONE = a_policy(reboot_cordoned=False)
CORDONED = {"unschedulable": True, "cordoned_by": ("kubectl-cordon",)}
NOW_PLEASE = {"annotations": {keys.REBOOT_NOW: "until=2026-03-04T18:00:00Z"}}


@pytest.mark.parametrize(
    ("node", "policy", "is_refused"),
    [
        pytest.param(CORDONED, LEFT_ALONE, True, id="another client's cordon"),
        pytest.param({"unschedulable": True}, LEFT_ALONE, True, id="a cordon of an unknown client"),
        pytest.param(
            {"unschedulable": True, "cordoned_by": ("careen-agent", "argo")},
            LEFT_ALONE,
            True,
            id="a cordon that careen and another client set",
        ),
        pytest.param(
            {"unschedulable": True, "cordoned_by": ("careen-agent",)}, LEFT_ALONE, False, id="careen's own cordon"
        ),
        pytest.param({}, LEFT_ALONE, False, id="no cordon"),
        pytest.param({**CORDONED, **NOW_PLEASE}, LEFT_ALONE, False, id="a person waives the refusal with reboot-now"),
        pytest.param(CORDONED, a_policy(), False, id="the default setting allows cordoned nodes"),
    ],
)
def test_a_foreign_cordon_refuses_a_reboot_only_if_a_setting_says_so(
    node: dict[str, Any], policy: Any, is_refused: bool
) -> None:
    refused = foreign_cordon.ask(a_situation(a_node(**node), policy=policy), When.READY)
    assert (refused is not None and refused.code is Code.CORDONED) is is_refused


def test_the_refusal_shows_who_cordoned_the_node() -> None:
    decision = decided(a_progress(Phase.WAITING), node=CORDONED, policy=a_policy(reboot_cordoned=False, taint_key=None))
    assert (
        decision.reason.sentence
        == "the node is cordoned by kubectl-cordon, not by careen, and --reboot-cordoned is false"
    )


@pytest.mark.parametrize(
    ("record", "is_foreign"),
    [
        (a_progress(Phase.DRAINING, is_cordoned_by_us=True), False),
        (a_progress(Phase.DRAINING, claim="", is_cordoned_by_us=True), True),
        (a_progress(Phase.DRAINING, boot_left="", is_cordoned_by_us=True), True),
        (a_progress(Phase.DRAINING, is_cordoned_by_us=False), True),
    ],
    ids=[
        "a consistent record of careen's cordon",
        "a record of the phase Draining that lacks the claim",
        "a record of the phase Draining that lacks the boot id",
        "a consistent record without a cordon",
    ],
)
def test_an_inconsistent_progress_record_does_not_prove_that_careen_cordoned_the_node(
    record: Any, is_foreign: bool
) -> None:
    assert cordons.is_foreign(a_marked_node(record, **CORDONED)) is is_foreign


OURS = a_marked_node(a_progress(Phase.FAILED, claim="", boot_left="", is_cordoned_by_us=True), name="n2")


@pytest.mark.parametrize(
    ("other", "counts", "word"),
    [
        pytest.param(
            a_node("n2", unschedulable=True), True, "is cordoned by somebody, not by careen", id="a foreign cordon"
        ),
        pytest.param(a_node("n2", unschedulable=True), False, "", id="a foreign cordon with --count-cordoned=false"),
        pytest.param(
            a_node("n2", unschedulable=True, ready=False),
            False,
            "is not ready",
            id="a cordoned node that is not ready",
        ),
        pytest.param(a_node("n2", ready=False), False, "is not ready", id="an uncordoned node that is not ready"),
        pytest.param(
            OURS, False, "is still cordoned by careen", id="a node cordoned by careen is always treated as down"
        ),
        pytest.param(
            a_marked_node(a_progress(Phase.DRAINING), name="n2"),
            False,
            "was taken down by careen",
            id="a draining node is always treated as down",
        ),
    ],
)
def test_a_setting_decides_whether_a_node_with_a_foreign_cordon_is_treated_as_down(
    other: NodeView, counts: bool, word: str
) -> None:
    down = others_down("n1", LockContent(), a_fleet(a_node("n1"), other), count_cordoned=counts)
    assert down == ({"n2": f"n2 {word}"} if word else {})


def test_the_refusal_says_why_the_node_is_treated_as_down() -> None:
    fleet = a_fleet(a_node("n1"), a_node("n2", unschedulable=True), a_node("n3", ready=False))
    refused = budgets.ask(a_situation(fleet=fleet), When.READY)
    assert refused is not None
    assert refused.sentence.startswith(
        "n2 is cordoned by somebody, not by careen, n3 is not ready; with this node 3 nodes would be down"
    )


def test_a_budget_ignores_a_cordoned_node_that_is_not_treated_as_down() -> None:
    node = a_node(labels={keys.CONTROL_PLANE: ""})
    other = a_node("n2", unschedulable=True, labels={keys.CONTROL_PLANE: ""})

    def refused(counts: bool) -> Code | None:
        policy = a_policy(concurrency=2, count_cordoned=counts)
        refusal = budgets.ask(a_situation(node, fleet=a_fleet(node, other), policy=policy), When.READY)
        return refusal.code if refusal else None

    assert [refused(True), refused(False)] == [Code.BUDGET_SPENT, None]
