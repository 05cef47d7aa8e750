"""Tests the table of `careen explain`: its columns, and the sentence above it."""

from __future__ import annotations

from typing import Any

from careen.report.explain_report import explain_json, explain_text
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.record import Record, explain
from scheduler_core.snapshot.loading import load_objects


def a_node(name: str, cpu: str = "4") -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}},
    }


def a_pod(cpu: str = "1") -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop", "uid": "p"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]},
    }


def record(*objects: dict[str, Any]) -> Record:
    snapshot = load_objects(objects)
    return explain(Scheduler(), snapshot, snapshot.pod("shop/p"))


def test_only_plugins_whose_scores_differ_have_a_column() -> None:
    header = explain_text(record(a_node("n1", "4"), a_node("n2", "8"), a_pod())).splitlines()[2].split()
    assert header == ["NODE", "TOTAL", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "OTHERS", "VERDICT"]


def test_the_columns_add_up_to_the_total() -> None:
    rows = explain_text(record(a_node("n1", "4"), a_node("n2", "8"), a_pod())).splitlines()[3:5]
    for _, total, *scores in (row.split()[:-1] for row in rows):
        assert int(total) == sum(map(int, scores))
        assert int(scores[-1]) > 0


def test_careen_explain_reports_a_random_choice_among_equal_nodes() -> None:
    assert explain_text(record(a_node("n1"), a_node("n2"), a_pod())).splitlines()[0] == (
        "The pod shop/p is not on a node and requests 1000m cpu and 1024Mi memory. The pod would go to n1, chosen at "
        "random among the equal nodes n1, n2; 2 of 2 nodes can hold the pod."
    )


def test_a_pod_that_fits_nowhere_is_shown_with_the_schedulers_message() -> None:
    made = record(a_node("n1"), a_pod("5"))
    assert (
        explain_text(made)
        .splitlines()[0]
        .startswith(
            "The pod shop/p is not on a node and requests 5000m cpu and 1024Mi memory. The pod would find no node: "
            "0/1 nodes are "
            "available: 1 Insufficient cpu."
        )
    )
    assert explain_json(made)["nodes"][0]["refusal"] == {
        "code": "UnschedulableAndUnresolvable",
        "plugin": "NodeResourcesFit",
        "reasons": ["Insufficient cpu"],
    }


def fleet() -> Record:
    """Return the record of a scheduling cycle in a fleet of 1,523 nodes. The pod fits on 700 nodes, 812 are too small,
    and 11 are cordoned."""
    nodes = [a_node(f"node-{number:04}", cpu="64" if number < 711 else "1") for number in range(1523)]
    for node in nodes[700:711]:
        node["spec"] = {"unschedulable": True}
    return record(*nodes, a_pod("2"))


def test_careen_explain_fits_a_large_cluster_on_one_screen() -> None:
    lines = explain_text(fleet()).splitlines()
    assert len(lines) < 40
    assert lines[-2:] == [
        "812 nodes cannot hold the pod: NodeResourcesFit: Insufficient cpu (node-0711, node-0712, node-0713, …)",
        (
            "11 nodes cannot hold the pod: NodeUnschedulable: node(s) were unschedulable "
            "(node-0700, node-0701, node-0702, …)"
        ),
    ]
    (more,) = (line for line in lines if "more nodes can hold the pod" in line)
    assert more.startswith("680 more nodes can hold the pod, with total scores of ")
    assert more.endswith("; --all shows each node.")


def test_careen_explain_lists_every_node_if_the_user_asks_for_all_nodes() -> None:
    assert len(explain_text(fleet(), every_node=True).splitlines()) == 1523 + 3


def test_careen_explain_lists_the_best_nodes_first() -> None:
    lines = explain_text(record(a_node("n1", "4"), a_node("n2", "8"), a_pod())).splitlines()
    assert [line.split()[0] for line in lines[3:]] == ["n2", "n1"]


def test_careen_explain_has_no_table_if_the_pod_fits_on_no_node() -> None:
    lines = explain_text(record(a_node("n1"), a_pod("5"))).splitlines()
    assert lines[1:] == ["", "1 node cannot hold the pod: NodeResourcesFit: Insufficient cpu (n1)"]


def test_overlapping_budgets_whose_order_may_decide_a_preemption_are_named() -> None:
    labelled = {"name": "low", "namespace": "shop", "uid": "low", "labels": {"app": "x"}}
    low = {**a_pod("3"), "metadata": labelled, "spec": {**a_pod("3")["spec"], "nodeName": "n1"}}
    high = {**a_pod("3"), "spec": {**a_pod("3")["spec"], "priority": 9}}
    budgets = [
        {"kind": "PodDisruptionBudget", "metadata": {"name": each, "namespace": "shop"}, "spec": {"selector": selector}}
        for each in ("a", "b")
        for selector in ({"matchLabels": {"app": "x"}},)
    ]
    snapshot = load_objects([a_node("n1"), low, high, *budgets])
    made = explain(Scheduler(kube_version="1.37"), snapshot, snapshot.pod("shop/p"))
    assert " ".join(explain_text(made).split()).find("The disruption budgets shop/a and shop/b select the same pod") > 0
