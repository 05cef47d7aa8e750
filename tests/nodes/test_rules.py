"""Tests the rules that are checked at the end of each test on real nodes. The tests of the rules need no machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.harness.observer import NodeSeen, PodLife, Seen
from tests.cluster.harness.workloads import SHOP
from tests.nodes.harness.rules import budget_was_kept, left_without_eviction, rebooted_often


def node(at: float, *, boot: str = "first", cordoned: bool = False, name: str = "n1") -> NodeSeen:
    return NodeSeen(
        at=at,
        name=name,
        uid="u",
        exists=True,
        unschedulable=cordoned,
        ready=True,
        boot_id=boot,
        taints=(),
        labels={},
        annotations={},
    )


def pod(name: str, **more: Any) -> PodLife:
    values: dict[str, Any] = {
        "namespace": SHOP,
        "owner": "ReplicaSet/web",
        "created_at": 1.0,
        "labels": {"app": "web"},
        "node": "n1",
        "ready_at": 2.0,
    }
    return PodLife(uid=name, name=name, **{**values, **more})


def a_good_story() -> Seen:
    """Return the records of a correct roll-out: the node n1 is cordoned at second 10 and reboots. One of two pods is
    evicted at second 12, and its replacement is ready at second 14."""
    return Seen(
        nodes=[node(0), node(10, cordoned=True), node(20, cordoned=True, boot="second"), node(22, boot="second")],
        pods={
            life.uid: life
            for life in (
                pod("web-1", deleting_at=12.0, gone_at=13.0, evicted=True),
                pod("web-2", node="n2"),
                pod("web-3", node="n2", created_at=12.0, ready_at=14.0),
            )
        },
    )


def sentences(seen: Seen, *, replicas: int = 2, unavailable: int = 1, boots: int = 1) -> list[str]:
    return [
        *left_without_eviction(seen),
        *budget_was_kept(seen, "web", replicas=replicas, unavailable=unavailable),
        *rebooted_often(seen, {"n1": boots}),
    ]


def with_pod(**more: Any) -> Seen:
    seen = a_good_story()
    seen.pods["web-4"] = pod("web-4", **more)
    return seen


def test_the_rules_find_nothing_in_a_recording_without_violations() -> None:
    assert sentences(a_good_story()) == []


def test_the_rules_report_a_pod_that_left_a_cordoned_node_without_an_eviction() -> None:
    assert left_without_eviction(with_pod(deleting_at=12.0)) == ["web-4 left n1 without an eviction"]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"evicted": True}, id="an evicted pod"),
        pytest.param({"owner": "DaemonSet/log"}, id="a DaemonSet pod"),
        pytest.param({"owner": "Node/n1"}, id="a static pod"),
        pytest.param({"namespace": "kube-system"}, id="a pod of another namespace"),
        pytest.param({"node": "n2"}, id="a pod on another node"),
        pytest.param({"deleting_at": 8.0}, id="a pod deleted before the cordon"),
        pytest.param({"deleting_at": 23.0}, id="a pod deleted after the uncordon"),
        pytest.param({"deleting_at": 10.2}, id="a pod deleted less than half a second after the cordon"),
        pytest.param({"deleting_at": None}, id="a pod that is not deleted"),
    ],
)
def test_the_rules_accept_a_pod_that_was_evicted_or_needed_no_eviction(more: dict[str, Any]) -> None:
    assert left_without_eviction(with_pod(**{"deleting_at": 12.0, **more})) == []


def test_the_rules_report_that_too_few_pods_of_an_application_were_in_service() -> None:
    seen = a_good_story()
    assert budget_was_kept(seen, "web", replicas=2, unavailable=0) == ["only 1 of 2 pods of web were in service"]
    seen.pods["web-2"] = pod("web-2", node="n2", deleting_at=13.0, evicted=True)
    assert budget_was_kept(seen, "web", replicas=2, unavailable=1) == ["only 0 of 2 pods of web were in service"]


def test_the_rules_do_not_check_an_application_before_all_of_its_pods_are_in_service() -> None:
    starting = Seen(pods={"web-1": pod("web-1"), "web-2": pod("web-2", ready_at=9.0)})
    assert budget_was_kept(starting, "web", replicas=2, unavailable=0) == []
    never_ready = with_pod(ready_at=None, deleting_at=12.5, evicted=True)
    assert budget_was_kept(never_ready, "web", replicas=2, unavailable=1) == []


def test_pods_of_another_application_do_not_count_towards_a_budget() -> None:
    seen = with_pod(labels={"app": "db"}, ready_at=11.0)
    assert budget_was_kept(seen, "web", replicas=2, unavailable=0) == ["only 1 of 2 pods of web were in service"]


@pytest.mark.parametrize(
    ("boots", "found"), [([], 0), (["second", "third"], 2), (["second", "first"], 2), (["", "second"], 1)]
)
def test_the_rules_report_a_wrong_number_of_boots(boots: list[str], found: int) -> None:
    seen = Seen(
        nodes=[node(0), *(node(10.0 + number, boot=boot) for number, boot in enumerate(boots)), node(1, name="n2")]
    )
    assert rebooted_often(seen, {"n1": found, "n2": 0}) == []
    assert rebooted_often(seen, {"n1": found + 1}) == [f"n1 booted {found} times, not {found + 1}"]
