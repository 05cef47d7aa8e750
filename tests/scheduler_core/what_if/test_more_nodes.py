"""Tests whether more nodes of a kind help the pending pods, how many nodes are needed, and why no number of nodes
helps."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core import Scheduler, Snapshot, load_objects
from scheduler_core.model.manifests.from_manifest import node_from_manifest
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.snapshot import UnknownNodeError
from scheduler_core.testing.builders import a_node, a_pod, manifests
from scheduler_core.what_if.more_nodes import nodes_needed, with_more_nodes
from scheduler_core.what_if.node_template import like_node, new_nodes, template_from_manifest

Json = dict[str, Any]
SCHEDULER = Scheduler()
HOSTNAME = "kubernetes.io/hostname"
NOT_CHOSEN = "node(s) didn't match Pod's node affinity/selector"


def node(name: str = "v012", cpu: str = "4", **labels: str) -> Json:
    manifest: Json = a_node(name).manifest
    manifest["metadata"]["labels"].update(labels)
    manifest["status"]["allocatable"]["cpu"] = cpu
    return manifest


def pod(name: str, cpu: str = "3", on: str = "", **spec: Any) -> Json:
    manifest: Json = a_pod(name).manifest
    manifest["metadata"]["labels"] = {"app": "web"}
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    manifest["spec"] |= {"nodeName": on, **spec}
    return manifest


def daemon(name: str, on: str, cpu: str = "1", **spec: Any) -> Json:
    manifest = pod(name, cpu, on, **spec)
    manifest["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "agent", "controller": True}]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}]
    manifest["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    return manifest


def full(*waiting: Json, **labels: str) -> tuple[Snapshot, tuple[Pod, ...]]:
    """Returns a cluster of one full node, and the pending pods of this cluster."""
    snapshot = load_objects([node(**labels), pod("resident", "4", "v012"), *waiting])
    return snapshot, snapshot.pending


def test_a_negative_number_of_nodes_is_refused() -> None:
    snapshot, waiting = full(pod("p"))
    with pytest.raises(ValueError, match="count is -1: expected the number of nodes to add, 0 or more"):
        with_more_nodes(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012"), -1)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_each_new_node_is_filled_with_the_pods_that_fit(count: int) -> None:
    snapshot, waiting = full(*(pod(f"p{i}") for i in range(3)))
    found = with_more_nodes(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012"), count)
    assert (len(found.placed), found.on_new_nodes, len(found.refused)) == (
        min(count, 3),
        min(count, 3),
        max(3 - count, 0),
    )
    assert snapshot.node_names == ("v012",)


def test_the_smallest_sufficient_number_of_nodes_is_found() -> None:
    snapshot, waiting = full(*(pod(f"p{i}", "2") for i in range(5)))
    found = nodes_needed(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012"))
    assert (found.best.count, found.is_enough, found.helps) == (3, True, True)


def test_no_node_is_needed_if_every_pod_has_room() -> None:
    snapshot, waiting = full(pod("small", "0"))
    found = nodes_needed(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012"))
    assert (found.best.count, found.is_enough, found.helps, found.tried) == (0, True, False, 0)


def test_no_number_of_nodes_helps_a_pod_with_scheduling_gates() -> None:
    gated = pod("gated", "2", schedulingGates=[{"name": "quota"}])
    snapshot, waiting = full(gated)
    found = nodes_needed(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012"))
    assert (found.best.count, found.best.placed) == (0, {})
    (verdict,) = found.best.refused.values()
    assert verdict.reasons == ("waiting for scheduling gates: [quota]",)


def test_without_pending_pods_no_node_is_needed() -> None:
    snapshot, waiting = full()
    assert nodes_needed(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012")).is_enough


@pytest.mark.parametrize(
    ("stranger", "plugin", "reason"),
    [
        (pod("big", "5"), "NodeResourcesFit", "Insufficient cpu"),
        (
            pod("picky", "1", nodeSelector={"disk": "ssd"}),
            "NodeAffinity",
            "node(s) didn't match Pod's node affinity/selector",
        ),
    ],
    ids=["the pod is too large for the node", "the pod requires another kind of node"],
)
def test_the_answer_says_why_a_new_node_refuses_the_pod(stranger: Json, plugin: str, reason: str) -> None:
    snapshot, waiting = full(stranger)
    found = nodes_needed(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012"))
    (verdict,) = found.best.refused.values()
    assert (found.helps, found.best.count, found.tried) == (False, 0, 1)
    assert (verdict.plugin, verdict.reasons) == (plugin, (reason,))


def test_a_pod_that_no_node_can_hold_does_not_raise_the_number_of_nodes() -> None:
    snapshot, waiting = full(pod("big", "5"), pod("a"), pod("b"))
    found = nodes_needed(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012"))
    assert (found.best.count, len(found.best.placed), found.is_enough, found.helps) == (2, 2, False, True)
    assert list(found.best.refused) == ["default/big"]


@pytest.mark.parametrize("domains", [2, 3, 4])
def test_several_nodes_may_help_where_one_node_does_not(domains: int) -> None:
    """The pods' spread constraint has minDomains: a host may have a second pod only if the cluster has at least
    minDomains hosts. The cluster has one host with one pod."""
    spread = {
        "maxSkew": 1,
        "minDomains": domains,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    waiting = [pod(f"p{i}", "0", topologySpreadConstraints=[spread]) for i in range(domains)]
    snapshot = load_objects([node(), pod("x", "0", "v012"), *waiting])
    found = nodes_needed(SCHEDULER, snapshot, snapshot.pending, like_node(snapshot, "v012"))
    assert (found.best.count, found.is_enough, found.helps) == (domains - 1, True, True)


def test_pods_of_higher_priority_are_placed_first() -> None:
    snapshot, waiting = full(pod("low"), pod("high", priority=10))
    found = with_more_nodes(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012"), 1)
    assert (list(found.placed), list(found.refused)) == (["default/high"], ["default/low"])


def test_a_copied_node_is_empty_except_for_daemonset_pods() -> None:
    manifest = node("v012", "4", own="v012", disk="ssd")
    manifest["spec"] = {
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"},
            {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
        ],
    }
    manifest["status"]["images"] = [{"names": ["app:1"], "sizeBytes": 9}]
    snapshot = load_objects([manifest, node("v012-new-1"), pod("web", "1", "v012"), daemon("agent-x", "v012")])
    ((made, pods),) = new_nodes(like_node(snapshot, "v012"), 1, snapshot)
    assert made.name == "v012-new-2"
    assert made.labels == {HOSTNAME: made.name, "own": made.name, "disk": "ssd"}
    assert ([taint.key for taint in made.taints], made.unschedulable, made.images) == (["dedicated"], False, ())
    assert [(each.owner.name if each.owner else "", each.node_name) for each in pods] == [("agent", made.name)]


def test_the_daemonset_pods_of_a_new_node_leave_less_room_for_other_pods() -> None:
    snapshot = load_objects([node(), daemon("agent-x", "v012"), pod("resident", "3", "v012"), pod("whole", "4")])
    found = nodes_needed(SCHEDULER, snapshot, snapshot.pending, like_node(snapshot, "v012"))
    assert not found.helps


@pytest.mark.parametrize(("taints", "runs"), [((), 1), (({"key": "gpu", "effect": "NoSchedule"},), 0)])
def test_a_node_from_a_manifest_gets_the_matching_daemonset_pods(taints: tuple[Json, ...], runs: int) -> None:
    snapshot = load_objects([node(), daemon("agent-x", "v012")])
    manifest = node("large", "64")
    manifest["spec"]["taints"] = list(taints)
    assert len(template_from_manifest(snapshot, node_from_manifest(manifest), SCHEDULER).daemons) == runs


def test_copying_an_unknown_node_is_an_error() -> None:
    snapshot, _ = full()
    with pytest.raises(UnknownNodeError):
        like_node(snapshot, "v999")


def test_a_pod_of_another_scheduler_is_left_pending_with_the_reason() -> None:
    snapshot, waiting = full(pod("other", schedulerName="mine"))
    found = nodes_needed(SCHEDULER, snapshot, waiting, like_node(snapshot, "v012"))
    (verdict,) = found.best.refused.values()
    assert "mine" in verdict.message
    assert not found.helps


def test_daemon_sets_of_manifests_take_room_on_each_new_node() -> None:
    """Of 4 cores, a pod of the DaemonSet takes 1.5, so each new node has room for one of the others."""
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1500m"}}}]},
            }
        },
    }
    waiting = [a_pod(f"p{number}").requesting(cpu="2").build() for number in range(3)]
    for nodes in (manifests(a_node("n1").cordoned()), []):
        snapshot = Snapshot.from_manifests(nodes, daemon_set)
        new = template_from_manifest(snapshot, a_node("new").build(), Scheduler())
        assert nodes_needed(Scheduler(), snapshot, waiting, new).best.count == 3
        if nodes:
            assert nodes_needed(Scheduler(), snapshot, waiting, like_node(snapshot, "n1")).best.count == 3
