"""Tests the record of a scheduling cycle, which contains the cycle's decision and the verdict of every plugin."""

from __future__ import annotations

from typing import Any

from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.record import NodeRecord, Record, explain
from scheduler_core.snapshot.loading import load_objects


def a_node(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}},
    }


def a_pod(name: str, node: str = "", cpu: str = "1") -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": "Running" if node else "Pending"},
    }


def record(pod: str, *objects: dict[str, Any]) -> Record:
    snapshot = load_objects(objects)
    return explain(Scheduler(), snapshot, snapshot.pod(f"shop/{pod}"))


def row(of: Record, node: str) -> NodeRecord:
    return next(each for each in of.nodes if each.node == node)


def test_the_record_of_a_cycle_lists_nodes_by_score_and_refused_nodes_last() -> None:
    made = record(
        "p", a_node("busy"), a_node("cordoned", unschedulable=True), a_node("free"), a_pod("q", "busy", "2"), a_pod("p")
    )
    assert [each.node for each in made.nodes] == ["free", "busy", "cordoned"]
    assert made.result.node == "free"


def test_the_total_score_of_a_node_is_the_sum_of_its_weighted_scores() -> None:
    free = row(record("p", a_node("free"), a_node("other"), a_pod("p")), "free")
    assert free.total == sum(free.scores.values())


def test_the_record_has_the_verdict_of_every_plugin_even_after_a_refusal() -> None:
    refused = row(record("p", a_node("n1", cpu="1", unschedulable=True), a_pod("p", cpu="2")), "n1")
    assert refused.refusal is not None
    assert refused.refusal.plugin == "NodeUnschedulable"
    assert refused.verdicts["NodeResourcesFit"].reasons == ("Insufficient cpu",)
    assert refused.verdicts["NodeName"].is_success


def test_a_running_pod_is_judged_as_if_it_were_scheduled_again() -> None:
    made = record("p", a_node("n1", cpu="2"), a_node("n2", cpu="1"), a_pod("p", "n1", cpu="2"))
    assert (made.pod.node_name, made.result.node) == ("n1", "n1"), (
        "the requests of the running pod must not count as used"
    )
