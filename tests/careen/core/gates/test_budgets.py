"""The budgets gate. It limits how many nodes are down at once in the cluster and in a group, and protects the etcd
quorum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, NodeView, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Budget, BudgetKind, Order, Policy
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.gates.budgets import _quorum_refusal, budgets
from careen.core.gates.question import When
from careen.core.lock.content import LockContent
from careen.core.lock.notation import parse
from tests.careen.core.builders import a_fleet, a_marked_node, a_node, a_policy, a_progress, a_situation, an_entry, held

OWN = a_node("n1")


def answer(
    *others: NodeView, own: NodeView = OWN, policy: Policy | None = None, content: LockContent | None = None
) -> Code | None:
    situation = a_situation(own, policy or a_policy(), lock=content or LockContent(), fleet=a_fleet(own, *others))
    refused = budgets.ask(situation, When.CLAIMED)
    return refused.code if refused else None


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(a_node("n2"), None, id="a ready node that careen does not touch"),
        pytest.param(a_node("n2", ready=False), Code.NODES_DOWN, id="a node that is not ready"),
        pytest.param(a_node("n2", unschedulable=True), Code.NODES_DOWN, id="a node cordoned by a person"),
        pytest.param(
            a_marked_node(a_progress(Phase.DRAINING), name="n2"),
            Code.NODES_DOWN,
            id="a draining node whose claim is missing from the lock",
        ),
        pytest.param(
            a_marked_node(a_progress(Phase.SETTLING), name="n2"),
            Code.NODES_DOWN,
            id="a settling node whose claim is missing from the lock",
        ),
        pytest.param(
            a_marked_node(a_progress(Phase.FAILED), name="n2"), Code.NODES_DOWN, id="a failed node that keeps its claim"
        ),
        pytest.param(
            a_marked_node(a_progress(Phase.FAILED, is_releasing=True), name="n2"),
            None,
            id="a failed node whose drain was undone",
        ),
        pytest.param(a_marked_node(a_progress(Phase.WAITING), name="n2"), None, id="a node that waits for its reboot"),
        pytest.param(
            a_marked_node(a_progress(Phase.CLAIMING), name="n2"), None, id="a node that writes its claim into the lock"
        ),
        pytest.param(
            a_node("n2", annotations={keys.PROGRESS: "?"}),
            None,
            id="an unreadable progress record and no reboot label",
        ),
        pytest.param(
            a_node("n2", annotations={keys.PROGRESS: "?"}, labels={keys.REBOOT_LABEL: "required"}),
            None,
            id="an unreadable progress record and the reboot label `required`",
        ),
        pytest.param(
            a_node("n2", annotations={keys.PROGRESS: "?"}, labels={keys.REBOOT_LABEL: "in-progress"}),
            Code.NODES_DOWN,
            id="an unreadable progress record and the reboot label `in-progress`",
        ),
        pytest.param(
            a_node("n2", annotations={keys.PROGRESS: "?"}, labels={keys.REBOOT_LABEL: "failed"}),
            Code.NODES_DOWN,
            id="an unreadable progress record and the reboot label `failed`",
        ),
        pytest.param(
            a_node("n2", labels={keys.REBOOT_LABEL: "in-progress"}),
            Code.NODES_DOWN,
            id="a removed progress record and the reboot label `in-progress`",
        ),
    ],
)
def test_a_node_that_is_unready_or_cordoned_or_in_a_reboot_is_treated_as_down(
    other: NodeView, expected: Code | None
) -> None:
    assert answer(other) is expected


def test_the_agents_own_node_is_never_treated_as_down() -> None:
    assert answer(own=a_node("n1", ready=False, unschedulable=True)) is None
    assert answer(content=held(an_entry("n1"))) is None


@pytest.mark.parametrize(("concurrency", "expected"), [(1, Code.LIMIT_REACHED), (2, Code.NODES_DOWN), (3, None)])
def test_an_unready_node_that_holds_a_claim_uses_a_budget_only_once(concurrency: int, expected: Code | None) -> None:
    others = (a_node("n2", ready=False), a_node("n3", unschedulable=True))
    content = held(an_entry("n2", limit=concurrency))
    assert answer(*others, policy=a_policy(concurrency=concurrency), content=content) is expected


def test_a_smaller_limit_in_an_existing_claim_replaces_the_configured_limit() -> None:
    content = held(an_entry("n2", limit=2))
    assert answer(a_node("n2"), a_node("n3", ready=False), policy=a_policy(concurrency=5), content=content) is (
        Code.NODES_DOWN
    )


def test_a_claim_of_a_deleted_node_is_treated_as_a_node_that_is_down() -> None:
    assert answer(content=held(an_entry("gone"))) is Code.LIMIT_REACHED


ZONE = Budget(kind=BudgetKind.ZONE, limit=1)
DB = Budget(kind=BudgetKind.SELECTOR, limit=1, selector=Selector.parse("pool=db"))


@pytest.mark.parametrize(
    ("budget", "own", "other", "expected"),
    [
        (ZONE, {keys.ZONE: "a"}, {keys.ZONE: "a"}, Code.BUDGET_SPENT),
        (ZONE, {keys.ZONE: "a"}, {keys.ZONE: "b"}, None),
        (ZONE, {}, {}, None),
        (DB, {"pool": "db"}, {"pool": "db"}, Code.BUDGET_SPENT),
        (DB, {"pool": "web"}, {"pool": "db"}, None),
        (ZONE, {keys.CONTROL_PLANE: ""}, {keys.CONTROL_PLANE: ""}, Code.BUDGET_SPENT),
    ],
)
def test_a_budget_limits_only_the_nodes_of_its_group(
    budget: Budget, own: dict[str, str], other: dict[str, str], expected: Code | None
) -> None:
    policy = a_policy(concurrency=5, budgets=(budget,))
    assert answer(a_node("n2", labels=other, ready=False), own=a_node("n1", labels=own), policy=policy) is expected


def test_a_deleted_nodes_claim_is_included_in_the_budget_of_the_nodes_zone() -> None:
    policy = a_policy(concurrency=5, budgets=(ZONE,))
    content = held(an_entry("gone", groups=("zone=a",), limit=5))
    assert answer(own=a_node("n1", labels={keys.ZONE: "a"}), policy=policy, content=content) is Code.BUDGET_SPENT


def test_a_claim_with_an_unreadable_node_name_is_included_in_every_budget() -> None:
    policy = a_policy(concurrency=5, budgets=(ZONE,))
    content = parse('{"nodeID":"","maxOwners":5,"locks":[{"nodeID":7,"limit":5}]}')
    assert isinstance(content, LockContent)
    assert answer(own=a_node("n1", labels=IN_A), policy=policy, content=content) is Code.BUDGET_SPENT
    assert answer(own=a_node("n1"), policy=policy, content=content) is None


BY_ZONE = a_policy(order=Order.ZONE, concurrency=5)
IN_A, IN_B = {keys.ZONE: "a"}, {keys.ZONE: "b"}


@pytest.mark.parametrize(
    ("others", "content", "expected"),
    [
        pytest.param([a_node("n2", labels=IN_B)], None, None, id="careen works on no node"),
        pytest.param(
            [a_marked_node(a_progress(Phase.DRAINING), name="n2", labels=IN_A)],
            None,
            None,
            id="careen works on another node of the same zone",
        ),
        pytest.param(
            [a_marked_node(a_progress(Phase.DRAINING), name="n2", labels=IN_B)],
            None,
            Code.ZONE_AT_WORK,
            id="a node of another zone drains, and its claim is missing from the lock",
        ),
        pytest.param(
            [a_node("n2", labels=IN_B)],
            held(an_entry("n2", zone="b", limit=5)),
            Code.ZONE_AT_WORK,
            id="a node of another zone holds a claim",
        ),
        pytest.param(
            [a_node("n2", labels=IN_A)],
            held(an_entry("n2", zone=None, limit=5)),
            None,
            id="a node of the same zone holds a claim without a zone",
        ),
        pytest.param(
            [],
            held(an_entry("gone", zone=None, limit=5)),
            Code.ZONE_AT_WORK,
            id="a deleted node in an unknown zone holds a claim",
        ),
        pytest.param([a_node("n2", labels=IN_B, ready=False)], None, None, id="a node of another zone is not ready"),
    ],
)
def test_careen_reboots_nodes_of_only_one_zone_at_a_time_if_the_order_is_zone(
    others: list[NodeView], content: LockContent | None, expected: Code | None
) -> None:
    own = a_node("n1", labels=IN_A)
    assert answer(*others, own=own, policy=BY_ZONE, content=content) is expected
    assert answer(*others, own=own, policy=a_policy(concurrency=5), content=content) is None


def test_the_refusal_lists_the_nodes_of_the_other_zone_that_hold_claims() -> None:
    others = [a_marked_node(a_progress(Phase.SETTLING), name=name, labels=IN_B) for name in ("b2", "b1")]
    refused = budgets.ask(a_situation(a_node("n1", labels=IN_A), BY_ZONE, fleet=a_fleet(*others)), When.CLAIMED)
    assert refused is not None
    assert (
        refused.sentence == "nodes of another zone hold claims: b1, b2; --order=zone finishes one zone before the next"
    )


def members(count: int, down: int = 0) -> list[NodeView]:
    return [
        a_node(f"cp{number}", labels={keys.CONTROL_PLANE: ""}, ready=number >= down) for number in range(2, count + 1)
    ]


@pytest.mark.parametrize(("count", "expected"), [(1, None), (2, None), (3, None), (5, None)])
def test_a_control_plane_node_may_reboot_if_the_other_control_plane_nodes_are_up(
    count: int, expected: Code | None
) -> None:
    own = a_node("cp1", labels={keys.CONTROL_PLANE: ""})
    assert answer(*members(count), own=own, policy=a_policy(node_name="cp1", concurrency=5)) is expected


def test_the_etcd_quorum_is_protected_under_any_limits() -> None:
    own = a_node("cp1", labels={keys.CONTROL_PLANE: ""})
    fleet = a_fleet(
        own,
        *(a_node(f"cp{number}", labels={keys.CONTROL_PLANE: ""}, ready=False) for number in (2, 3)),
        *members(5)[2:],
    )
    situation = a_situation(own, a_policy(node_name="cp1", concurrency=9), fleet=fleet)
    refused = _quorum_refusal(situation, LockContent(), fleet)
    assert refused is not None
    assert refused.code is Code.QUORUM
    assert refused.sentence == "without this node 2 of 5 control-plane nodes would be up; 3 are needed"


def test_the_etcd_quorum_does_not_limit_worker_nodes() -> None:
    own = a_node("n1")
    fleet = a_fleet(own, *members(4, down=9))
    assert _quorum_refusal(a_situation(own, a_policy(concurrency=9), fleet=fleet), LockContent(), fleet) is None


@pytest.mark.parametrize("fleet", [Unknown("503"), NOT_ASKED])
def test_an_unknown_list_of_nodes_refuses_the_reboot(fleet: Any) -> None:
    refused = budgets.ask(a_situation(fleet=fleet), When.CLAIMED)
    assert refused is not None
    assert refused.code is Code.FLEET_UNKNOWN


def test_the_refusal_explains_why_each_node_is_down() -> None:
    situation = a_situation(
        OWN, a_policy(), fleet=a_fleet(OWN, a_node("n2", ready=False), a_node("n3", unschedulable=True))
    )
    refused = budgets.ask(situation, When.CLAIMED)
    assert refused is not None
    assert (
        refused.sentence
        == "n2 is not ready, n3 is cordoned by somebody, not by careen; with this node 3 nodes would be down; the "
        "limit is 1"
    )


RACK = "example.com/rack"


@pytest.mark.parametrize(
    ("percent", "members", "down", "expected"),
    [
        pytest.param(25, 8, 1, None, id="the budget allows two of eight nodes to be down"),
        pytest.param(
            25,
            8,
            2,
            "the budget topology:example.com/rack=r1 allows 2 (25% of 8)",
            id="the budget forbids that three of eight nodes are down",
        ),
        pytest.param(25, 7, 1, "allows 1 (25% of 7)", id="a quarter of seven nodes is rounded down to one"),
        pytest.param(1, 3, 0, None, id="one percent of three nodes allows one node down"),
        pytest.param(1, 3, 1, "allows 1 (1% of 3)", id="one percent of three nodes does not allow two nodes down"),
        pytest.param(100, 3, 2, None, id="all nodes may be down"),
    ],
)
def test_a_percentage_budget_applies_to_any_topology_label(
    percent: int, members: int, down: int, expected: str | None
) -> None:
    budget = Budget(kind=BudgetKind.TOPOLOGY, limit=2**31 - 1, key=RACK, percent=percent)
    nodes = [a_node(f"n{number}", labels={RACK: "r1"}, ready=number > down) for number in range(1, members + 1)]
    own = replace(nodes[-1], ready=True)
    others = [replace(node, ready=number >= down) for number, node in enumerate(nodes[:-1])]
    elsewhere = [a_node(f"m{number}", labels={RACK: "r2"}, ready=False) for number in range(3)]
    policy = a_policy(budgets=(budget,), concurrency=99)
    situation = a_situation(own, policy, lock=LockContent(), fleet=a_fleet(own, *others, *elsewhere, a_node("x")))
    refused = budgets.ask(situation, When.CLAIMED)
    assert (refused is None) is (expected is None)
    assert refused is None or refused.sentence.endswith(expected or "")


def test_the_smaller_of_two_budgets_that_select_a_node_applies() -> None:
    share = Budget(kind=BudgetKind.ZONE, limit=2**31 - 1, percent=50)
    one = Budget(kind=BudgetKind.SELECTOR, limit=1, selector=Selector.parse("app=db"))
    own, other = (a_node(name, labels={keys.ZONE: "a", "app": "db"}, ready=name == "n1") for name in ("n1", "n2"))
    rest = [a_node(f"m{number}", labels={keys.ZONE: "a"}) for number in range(4)]
    policy = a_policy(budgets=(share, one), concurrency=99)
    assert answer(other, *rest, own=own, policy=policy) is Code.BUDGET_SPENT
    assert answer(other, *rest, own=own, policy=a_policy(budgets=(share,), concurrency=99)) is None
