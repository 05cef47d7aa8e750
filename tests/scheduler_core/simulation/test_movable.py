"""Tests the number of pods that a drain of a node would move, also after pods were placed and removed."""

from __future__ import annotations

from scheduler_core.simulation.movable import MovableTally, movable_in_zone
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod, manifests


def test_daemonset_pods_are_never_counted_as_movable() -> None:
    replica = a_pod("replica").owned_by("ReplicaSet", "web")
    watcher = a_pod("watcher").owned_by("DaemonSet", "log")
    before = load_objects(manifests(a_node("a"), a_node("b"), replica.on("a"), watcher.on("a"), a_pod("bare").on("b")))
    assert before.tally(MovableTally()).tolist() == [1, 1]
    moved = before.without_pod("default/replica").with_pod_placed(replica.build(), "b")
    assert moved.tally(MovableTally()).tolist() == [0, 2]
    assert moved.without_pod("default/watcher").with_pod_placed(
        a_pod("second").owned_by("DaemonSet", "log").build(), "b"
    ).tally(MovableTally()).tolist() == [0, 2]
    assert before.tally(MovableTally()).tolist() == [1, 1]


def test_pods_that_the_drain_does_not_select_are_not_counted_as_movable() -> None:
    cluster = load_objects(
        manifests(a_node("a"), a_pod("web").owned_by("ReplicaSet", "web").on("a"), a_pod("db").on("a"))
    )
    of_web = MovableTally(lambda pod: "" if pod.name == "web" else "not selected")
    assert (cluster.tally(MovableTally()).tolist(), cluster.tally(of_web).tolist()) == ([2], [1])


def test_only_pods_with_a_required_spread_over_zones_count_as_pods_that_move_within_their_zone() -> None:
    zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
    pods = (
        a_pod("web").owned_by("ReplicaSet", "web").spread_over(zone),
        a_pod("api").owned_by("ReplicaSet", "api").spread_over(zone, whenUnsatisfiable="ScheduleAnyway"),
        a_pod("db").owned_by("StatefulSet", "db").spread_over(host),
        a_pod("log").owned_by("DaemonSet", "log").spread_over(zone),
    )
    cluster = load_objects(manifests(a_node("a"), a_node("b"), *(pod.on("a") for pod in pods)))
    assert movable_in_zone(cluster) == {"a": 1, "b": 0}
    assert movable_in_zone(cluster, lambda pod: "not selected" if pod.name == "web" else "") == {"a": 0, "b": 0}
