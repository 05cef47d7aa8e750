from __future__ import annotations

import pytest

from scheduler_core.model.labels import LabelSelector, Requirement
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import UnknownNodeError, UnknownPodError
from scheduler_core.testing.builders import a_node, a_pod, manifests


def test_the_error_for_an_unknown_node_or_pod_contains_the_requested_name() -> None:
    snapshot = load_objects(manifests(a_node("n1"), a_pod("p")))
    with pytest.raises(UnknownNodeError, match=r"^the snapshot has no node 'n9'$"):
        snapshot.with_pod_placed(a_pod().build(), "n9")
    with pytest.raises(UnknownNodeError):
        snapshot.with_node_cordoned("n9")
    with pytest.raises(UnknownPodError, match=r"^the snapshot has no pod default/x$"):
        snapshot.pod("default/x")
    with pytest.raises(UnknownPodError, match=r"^pod default/p is on no node of the snapshot$"):
        snapshot.without_pod("default/p")


def test_a_placed_pod_is_bound_and_no_longer_pending() -> None:
    snapshot = load_objects(manifests(a_node("n1"), a_pod("p").with_field("status.nominatedNodeName", "n1")))
    placed = snapshot.with_pod_placed(snapshot.pod("default/p"), "n1")
    assert (placed.pod("default/p").node_name, placed.pod("default/p").nominated_node_name, placed.pending) == (
        "n1",
        "",
        (),
    )
    assert [pod.key for pod in snapshot.pending] == ["default/p"]


def test_a_pod_marked_as_terminating_stays_on_its_node() -> None:
    snapshot = load_objects(manifests(a_node("n1"), a_pod("p").on("n1")))
    ending = snapshot.with_pod_terminating("default/p")
    assert [pod.terminating for pod in ending.pods_on("n1")] == [True]
    assert ending.with_pod_terminating("default/p") is ending
    assert not snapshot.pod("default/p").terminating


def test_removing_a_pod_works_for_placed_and_pending_pods() -> None:
    snapshot = load_objects(
        manifests(a_node("n1"), a_pod("placed").on("n1"), a_pod("waiting"), a_pod("orphan").on("n9"))
    )
    for name in ("placed", "waiting", "orphan", "nobody"):
        snapshot = snapshot.without(f"default/{name}")
    assert (snapshot.pods_on("n1"), snapshot.pending, snapshot.orphans) == ((), (), ())


def test_namespaces_are_selected_by_their_labels() -> None:
    red = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"team": "red"}}}
    bare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}
    snapshot = load_objects([red, bare])
    assert snapshot.namespaces_selected(LabelSelector((Requirement("team", "In", ("red",)),))) == {"a"}
    assert snapshot.namespaces_selected(LabelSelector((Requirement("team", "NotIn", ("red",)),))) == {"b"}
    assert snapshot.with_objects(namespaces={"c": {"team": "red"}}).namespaces_selected(
        LabelSelector((Requirement("team", "In", ("red",)),))
    ) == {"c"}


def test_a_cached_value_is_computed_once_for_all_derived_snapshots() -> None:
    snapshot = load_objects(manifests(a_node("n1")))
    asked: list[int] = []

    def work_out() -> int:
        asked.append(1)
        return 7

    assert snapshot.remember("key", work_out) == 7
    assert snapshot.with_node_cordoned("n1").remember("key", work_out) == 7
    assert len(asked) == 1


def test_a_node_info_sums_the_requests_of_the_pods_on_the_node() -> None:
    pods = [
        a_pod("a").requesting(cpu="1", memory="1Gi").on("n1"),
        a_pod("b").on("n1"),
        a_pod("c").with_host_port(80).on("n1"),
    ]
    snapshot = load_objects(manifests(a_node("n1"), a_node("n2").with_image("x:1", size_bytes=9), pods))
    info = snapshot.node_info(0)
    assert (info.requested["cpu"], info.requested["memory"], info.nonzero_cpu, len(info.pods)) == (1000, 2**30, 1200, 3)
    assert [port.port for port in info.used_ports] == [80]
    less = info.without_pod(snapshot.pod("default/a"))
    assert (less.requested["cpu"], len(less.pods), len(info.pods)) == (0, 2, 3)
    assert less.with_pod(snapshot.pod("default/a")).requested == info.requested
    with pytest.raises(ValueError, match="pod default/a is not on node n1"):
        less.without_pod(snapshot.pod("default/a"))
    assert info.image_state("x:1") is None
    assert snapshot.node_info(1).image_state("x:1") is not None


def test_removing_one_of_two_pods_frees_their_common_host_port() -> None:
    """kube-scheduler keeps the host ports of a node as a set without counts. So it treats a port as free although the
    second pod still uses it. scheduler_core repeats this in its dry run of preemption."""
    pods = [a_pod(name).with_host_port(80).on("n1") for name in ("a", "b")]
    info = load_objects(manifests(a_node("n1"), pods)).node_info(0)
    assert info.without_pod(info.pods[0]).used_ports == frozenset()


def test_a_snapshot_with_a_replaced_node_uses_the_new_node() -> None:
    snapshot = load_objects(manifests(a_node("n1"), a_pod("p").requesting(cpu="1").on("n1")))
    larger = snapshot.with_node_replaced(a_node("n1").offering(cpu="9").in_zone("b").build())
    assert larger.node_info(0).node.allocatable["cpu"] == 9000
    assert larger.columns.labels.topology("topology.kubernetes.io/zone").values == ("b",)
    assert [pod.key for pod in larger.pods_on("n1")] == ["default/p"]
