"""Tests the queue of displaced pods in a simulated drain: which pod the scheduler tries next, and between which pods
the order is unknown."""

from __future__ import annotations

from dataclasses import replace

from scheduler_core.model.pod import OwnerReference, Pod, PodSpec
from scheduler_core.simulation.scenario_parts.displaced import Displaced
from scheduler_core.simulation.scenario_parts.placement_queue import PlacementQueue

SPECS = {priority: PodSpec(priority=priority) for priority in (0, 5, 9)}  # replicas share theirs
WEB = OwnerReference("apps/v1", "ReplicaSet", "web", "u")


def a_pod(name: str, owner: OwnerReference | None = None, priority: int = 0) -> Pod:
    return Pod(name=name, namespace="shop", owner=owner, spec=SPECS[priority])


def landed(each: Displaced, node: str) -> Displaced:
    return replace(each, landed=True, replacement=each.replacement.on_node(node), choices=(node,))


def test_of_several_identical_pods_only_one_is_offered_for_placement() -> None:
    queue = PlacementQueue()
    queue.add_pool([a_pod("web-1", WEB), a_pod("db"), a_pod("web-2", WEB)])
    assert set(queue.open_kinds) == {"shop/web-1", "shop/db"}
    queue.take("shop/db")
    assert (queue.line, queue.pool) == (("shop/db",), ("shop/web-1", "shop/web-2"))


def test_each_round_tries_the_unplaced_pods_in_order_of_priority() -> None:
    queue = PlacementQueue()
    queue.add_pool([a_pod("low"), a_pod("high", priority=9)])
    queue.postpone()
    assert (queue.pool, queue.postponed) == ((), ("shop/low", "shop/high"))
    queue.begin_round([a_pod("new")])
    assert (queue.pool, queue.postponed) == (("shop/high", "shop/low", "shop/new"), ())


def test_after_one_failed_try_no_identical_pod_is_tried_before_the_next_round() -> None:
    queue = PlacementQueue()
    queue.add_waiting([a_pod("old-1", WEB), a_pod("old-2", WEB), a_pod("other", priority=5)])
    assert queue.line == ("shop/other", "shop/old-1", "shop/old-2")
    queue.tried(queue.displaced["shop/other"])
    queue.tried(first := queue.displaced["shop/old-1"])
    queue.drop_alike(first)
    assert queue.line == ()
    queue.begin_round([])
    assert (queue.line, queue.pool) == (("shop/other", "shop/old-1", "shop/old-2"), ())


def test_a_replacement_that_is_preempted_after_its_placement_is_queued_again() -> None:
    queue = PlacementQueue()
    key = queue.add(a_pod("web-1", WEB))
    queue.tried(each := landed(queue.displaced[key], "n2"))
    queue.add_victim(each.replacement, preemptions=1)
    assert (list(queue.displaced), queue.line) == ([key], (key,))
    assert not queue.displaced[key].landed


def test_a_preempted_pod_without_a_controller_is_not_recreated() -> None:
    queue = PlacementQueue()
    queue.add_victim(a_pod("bare"), preemptions=1)
    assert (queue.displaced, queue.line) == ({}, ())


def test_queues_that_differ_only_in_swapped_replicas_are_merged() -> None:
    one, other = PlacementQueue(), PlacementQueue()
    for queue, nodes in ((one, ("n1", "n2")), (other, ("n2", "n1"))):
        for name, node in zip(("web-1", "web-2"), nodes, strict=True):
            key = queue.add(a_pod(name, WEB))
            queue.displaced[key] = landed(queue.displaced[key], node)
    assert one.likeness == other.likeness
    other.displaced["shop/web-2"] = replace(other.displaced["shop/web-2"], choices=("n1", "n9"))
    one.absorb(other, (0.5, 0.5), is_theirs=False)
    assert [each.choices for each in one.displaced.values()] == [("n1", "n9"), ("n2",)]
    other.add_pool([a_pod("web-3", WEB)])
    assert one.likeness != other.likeness
