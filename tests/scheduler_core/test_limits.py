"""Tests the limits that scheduler_core/README.md documents."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.framework.scoring import by_usage
from scheduler_core.snapshot.loading import load_objects


def a_node(name: str, memory: int) -> dict[str, Any]:
    allocatable = {"cpu": "4", "memory": str(memory), "pods": "9"}
    return {"kind": "Node", "metadata": {"name": name, "uid": name}, "status": {"allocatable": allocatable}}


def judged(memory: int, *nodes: dict[str, Any]) -> Any:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop", "uid": "p"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": str(memory)}}}]},
    }
    snapshot = load_objects([*nodes, pod])
    return Scheduler().schedule(snapshot, snapshot.pod("shop/p"))


@pytest.mark.parametrize(("has", "fits"), [(2**61, False), (2**62 - 1, False), (2**62, True)])
def test_resource_amounts_below_2_to_the_62_are_exact(has: int, fits: bool) -> None:
    assert (judged(has + 1, a_node("n1", has)).node is not None) is fits


@pytest.fixture(params=[1000, 0], ids=["small clusters", "large clusters with cached scores"])
def _fewest_nodes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_usage, "_FEWEST_NODES", request.param)


@pytest.mark.usefixtures("_fewest_nodes")
@pytest.mark.parametrize(("petabytes", "is_judged"), [(92, True), (93, False)])
def test_scores_overflow_on_a_node_with_more_than_92_petabytes(petabytes: int, is_judged: bool) -> None:
    result = judged(2**30, a_node("n1", petabytes * 10**15), a_node("n2", 2**33))
    assert (result.node is not None) is is_judged
    assert ("returns an invalid score" in result.error) is not is_judged


@pytest.mark.usefixtures("_fewest_nodes")
def test_a_score_overflow_on_a_node_that_was_filtered_out_does_not_matter() -> None:
    huge = a_node("huge", 93 * 10**15)
    huge["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    assert judged(2**30, huge, a_node("n1", 2**33), a_node("n2", 2**33), a_node("n3", 2**34)).node == "n3"
