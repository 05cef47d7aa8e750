"""Tests the score of forecasts, which is computed from the writes of a roll-out. A forecast lists the nodes on which
the replacement of an evicted pod may be placed. The replacements of one owner are interchangeable, but each replacement
makes at most one of this owner's forecasts right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drydock.checker.journal import Write
from drydock.rollout.forecast_score import ForecastScore, score_forecasts


def a_pod(name: str, owner: str, node: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "ownerReferences": [{"uid": owner, "controller": True}]},
        "spec": {"nodeName": node},
    }


def cordon(at: float, pods: dict[str, list[str]] | None, node: str = "n1") -> Write:
    annotations = {} if pods is None else {"careen.dev/forecast": json.dumps({"pods": pods})}
    return Write(
        at=at,
        actor=f"careen-agent-{node}",
        verb="patch",
        plural="nodes",
        key=("", node),
        before={"spec": {}},
        after={"metadata": {"annotations": annotations}, "spec": {"unschedulable": True}},
    )


def evicted(at: float, name: str, owner: str, node: str = "n1") -> Write:
    return Write(
        at=at,
        actor=f"careen-agent-{node}",
        verb="evict",
        plural="pods",
        key=("shop", name),
        before=a_pod(name, owner, node),
        after={},
    )


def bound(at: float, name: str, owner: str, node: str) -> Write:
    return Write(
        at=at,
        actor="system:kube-scheduler",
        verb="bind",
        plural="pods",
        key=("shop", name),
        before=a_pod(name, owner, ""),
        after=a_pod(name, owner, node),
    )


def back(at: float, node: str = "n1") -> Write:
    return Write(
        at=at,
        actor=f"careen-agent-{node}",
        verb="patch",
        plural="nodes",
        key=("", node),
        before={"spec": {"unschedulable": True}},
        after={"metadata": {}, "spec": {}},
    )


TWO = [evicted(2, "web-a", "web"), evicted(3, "web-b", "web")]


@pytest.mark.parametrize(
    ("said", "went", "hits"),
    [
        pytest.param(
            {"shop/web-a": ["n2"], "shop/web-b": ["n3"]},
            ["n2", "n3"],
            2,
            id="both pods are replaced on their forecast nodes",
        ),
        pytest.param(
            {"shop/web-a": ["n2"], "shop/web-b": ["n3"]},
            ["n3", "n2"],
            2,
            id="the replicas of one owner are interchangeable",
        ),
        pytest.param(
            {"shop/web-a": ["n2"], "shop/web-b": ["n3"]},
            ["n2", "n2"],
            1,
            id="both replacements are on n2, but the forecast has n2 for only one of the pods",
        ),
        pytest.param(
            {"shop/web-a": ["n2", "n3"], "shop/web-b": ["n2"]},
            ["n2", "n3"],
            2,
            id="replacements are matched so that as many forecasts as possible are right",
        ),
        pytest.param(
            {"shop/web-a": ["n2"], "shop/web-b": ["n3"]},
            ["n4", "n5"],
            0,
            id="both pods are replaced on nodes that were not forecast",
        ),
        pytest.param({"shop/web-a": ["n2"], "shop/web-b": ["n3"]}, [], 0, id="the evicted pods are not replaced"),
    ],
)
def test_a_replacement_on_a_forecast_node_counts_as_a_hit(
    said: dict[str, list[str]], went: list[str], hits: int
) -> None:
    binds = [bound(4 + i, f"new-{i}", "web", node) for i, node in enumerate(went)]
    assert score_forecasts([cordon(1, said), *TWO, *binds, back(9)]) == ForecastScore(hits=hits, total=2)


def test_the_score_leaves_out_a_forecast_with_an_incomplete_list_of_nodes() -> None:
    writes = [
        cordon(1, {"shop/web-a": ["n2", "…"], "shop/web-b": ["n3"]}),
        *TWO,
        bound(4, "x", "web", "n4"),
        bound(5, "y", "web", "n3"),
        back(9),
    ]
    assert score_forecasts(writes) == ForecastScore(hits=1, total=1)


def test_pods_of_other_owners_and_pods_bound_after_the_drain_are_no_replacements() -> None:
    writes = [
        cordon(1, {"shop/web-a": ["n2"]}),
        evicted(2, "web-a", "web"),
        bound(3, "new", "api", "n2"),
        back(4),
        bound(5, "late", "web", "n2"),
    ]
    assert score_forecasts(writes) == ForecastScore(hits=0, total=1)


def test_the_score_is_the_sum_over_all_drains() -> None:
    one = [cordon(1, {"shop/web-a": ["n2"]}), evicted(2, "web-a", "web"), bound(3, "x", "web", "n2"), back(4)]
    two = [
        cordon(5, {"shop/web-b": ["n1"]}, "n2"),
        evicted(6, "web-b", "web", "n2"),
        bound(7, "y", "web", "n3"),
        back(8, "n2"),
    ]
    assert score_forecasts([*one, *two]) == ForecastScore(hits=1, total=2)


@pytest.mark.parametrize("writes", [[cordon(1, None), *TWO], [], [cordon(1, {})]])
def test_without_a_forecast_there_is_no_score(writes: list[Write]) -> None:
    assert score_forecasts(writes) is None
