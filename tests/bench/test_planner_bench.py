"""The rule to which `make bench-planner` compares the planner."""

from __future__ import annotations

import random

from bench.planner.__main__ import PlannerCase, drawn, estimate, measured
from scheduler_core import Scheduler, like_node, load_objects
from scheduler_core.testing.builders import a_node, a_pod, manifests

SCHEDULER = Scheduler()


def case(*millis: int, used: int = 8000) -> PlannerCase:
    full = a_pod("old").on("n0").requesting(cpu=f"{used}m", memory="1Gi")
    snapshot = load_objects(manifests(a_node("n0").offering(cpu="8", memory="32Gi", pods="110"), full))
    pods = tuple(a_pod(f"p{n}").requesting(cpu=f"{each}m", memory="1Gi").build() for n, each in enumerate(millis))
    return PlannerCase(snapshot, pods, like_node(snapshot, "n0"))


def test_the_rule_sorts_by_size_and_fills_each_new_node() -> None:
    assert estimate(SCHEDULER, case(3000, 5000, 3000, 5000)) == 2
    assert estimate(SCHEDULER, case(3000, 3000, 3000)) == 2


def test_pods_that_fit_in_the_cluster_need_no_new_node() -> None:
    assert estimate(SCHEDULER, case(3000, 5000, used=0)) == 0
    assert estimate(SCHEDULER, case(3000, 6000, used=0)) == 1


def test_a_pod_that_an_empty_node_refuses_adds_no_node() -> None:
    assert estimate(SCHEDULER, case(9000, 4000)) == 1
    assert estimate(SCHEDULER, case(9000, 9000)) == 0


def test_a_row_says_what_kube_scheduler_would_leave_pending() -> None:
    """Two small pods spread over the two nodes, and no node has room for a large one: the rule places large pods
    first."""
    row = measured(SCHEDULER, "plain", case(1000, 1000, 8000, 6000))
    assert (row.rule, row.pending, row.planner, row.is_enough) == (2, 1, 3, True)


def test_a_cluster_is_the_same_for_the_same_seed() -> None:
    one, other = (drawn(random.Random(3), "zones", [4, 9], [20, 30]) for _ in range(2))
    assert [pod.key for pod in one.pods] == [pod.key for pod in other.pods]
    assert one.snapshot.node_names == other.snapshot.node_names
