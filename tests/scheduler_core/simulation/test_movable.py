"""Tests that the number of movable pods equals a fresh count after every change."""

from __future__ import annotations

from scheduler_core.simulation.movable import MovableTally
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod, manifests


def test_pods_that_a_drain_leaves_are_never_counted_as_movable() -> None:
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


def test_movable_pods_follow_the_rule_of_the_drain() -> None:
    cluster = load_objects(
        manifests(a_node("a"), a_pod("web").owned_by("ReplicaSet", "web").on("a"), a_pod("db").on("a"))
    )
    of_web = MovableTally(lambda pod: "" if pod.name == "web" else "not selected")
    assert (cluster.tally(MovableTally()).tolist(), cluster.tally(of_web).tolist()) == ([2], [1])
