"""Tests the cluster of a simulated roll-out, in which nodes go down and come back."""

from __future__ import annotations

import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.labels import LabelSelector
from scheduler_core.model.taints import PREFER_NO_SCHEDULE, Taint
from scheduler_core.simulation.evicted.replacements import moves_all
from scheduler_core.simulation.rollout_parts.cluster import SimulatedCluster, tainted
from scheduler_core.simulation.searches import Draw
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod, manifests

SOFT = Taint("example.com/soft", "", PREFER_NO_SCHEDULE)
OBJECTS = manifests(
    a_node("n1"), a_node("n2").cordoned(), a_node("n3"), a_pod("web-1").on("n1").owned_by("ReplicaSet", "web")
)


def a_cluster(key: str | None = SOFT.key) -> SimulatedCluster:
    world, returning = tainted(load_objects(OBJECTS), ["n1", "n2"], key)
    return SimulatedCluster(world, returning, Scheduler(), moves_all, Draw())


def test_a_node_has_the_soft_taint_until_it_has_rebooted() -> None:
    cluster = a_cluster()
    assert [SOFT in cluster.world.node(name).taints for name in ("n1", "n2", "n3")] == [True, True, False]
    cluster.bring_back("n1")
    assert [SOFT in cluster.world.node(name).taints for name in ("n1", "n2")] == [False, True]


def test_without_a_taint_key_no_node_has_the_soft_taint() -> None:
    assert [a_cluster(None).world.node(name).taints for name in ("n1", "n3")] == [(), ()]


def test_a_simulated_drain_changes_the_cluster_only_after_a_call_of_take_over() -> None:
    cluster = a_cluster()
    before = cluster.world
    drain = cluster.drained("n1")
    assert (cluster.world is before, cluster.drained("n1") is drain) == (True, True)
    assert cluster.drained("n2").forecasts[0].node == "n2"
    drain = cluster.drained("n1")
    cluster.take_over(drain)
    assert cluster.world.node("n1").unschedulable
    assert [(pod.name, pod.phase) for pod in cluster.world.pods_on("n3")] == [("web-1", "Running")]
    assert cluster.drained("n1") is not drain


@pytest.mark.parametrize(
    ("wanted", "allowed", "bars"),
    [(1, 0, True), (1, 1, False), (0, 0, False)],
    ids=["wants all pods", "allows an eviction all the same", "is only spent"],
)
def test_a_budget_bars_a_node_only_if_waiting_cannot_help(wanted: int, allowed: int, bars: bool) -> None:
    cluster = a_cluster()
    (pod,) = cluster.world.pods_on("n1")
    budget = DisruptionBudget(
        namespace=pod.namespace,
        name="web",
        selector=LabelSelector(()),
        disruptions_allowed=allowed,
        current_healthy=0,
        desired_healthy=wanted,
        expected_pods=1,
    )
    cluster.world = cluster.world.with_objects(budgets=(budget,))
    assert cluster.bars("n1", (pod.key,)) is bars
    assert not cluster.bars("n1", ("default/another",))


def test_an_undone_drain_uncordons_the_node_unless_the_node_was_cordoned_before() -> None:
    cluster = a_cluster()
    for name in ("n1", "n2"):
        cluster.take_over(cluster.drained(name))
        cluster.undo_drain(name)
    assert [cluster.world.node(name).unschedulable for name in ("n1", "n2")] == [False, True]
    assert SOFT in cluster.world.node("n1").taints
