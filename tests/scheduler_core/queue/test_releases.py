"""What a scheduler's queue does otherwise in another release of kube-scheduler."""

from __future__ import annotations

import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.queue.assembly import queue_for
from scheduler_core.queue.events import Action, ClusterEvent, Resource
from scheduler_core.queue.scheduling_queue import Room


class Evictions:
    """Whether evictions for a pod are in progress: then DefaultPreemption holds it back."""

    def __init__(self) -> None:
        self.are_running = True
        self.asked = 0

    def __call__(self, _pod: Pod) -> bool:
        self.asked += 1
        return self.are_running


@pytest.mark.parametrize(("version", "nominated"), [("1.36", 0), ("1.37", 1)])
def test_since_1_37_a_gated_pod_keeps_its_nominated_node(version: str, nominated: int) -> None:
    queue = queue_for(Scheduler(kube_version=version))
    gated = Pod(name="a", uid="a", nominated_node_name="n1", spec=PodSpec(scheduling_gates=("g",)))
    assert queue.add(gated, 0.0) is Room.WAITING
    assert len(queue.nominations.on("n1")) == nominated


@pytest.mark.parametrize(("version", "room"), [("1.36", Room.WAITING), ("1.37", Room.ACTIVE)])
def test_since_1_37_a_gated_pod_is_tried_again_after_five_minutes(version: str, room: Room) -> None:
    evictions = Evictions()
    queue = queue_for(Scheduler(kube_version=version), is_preempting=evictions)
    assert queue.add(Pod(name="a", uid="a"), 0.0) is Room.WAITING
    evictions.are_running = False
    queue.flush_waiting(301.0)
    found = queue.find("default/a")
    assert found is not None
    assert (found[0], found[1].was_flushed) == (room, True)


@pytest.mark.parametrize(("version", "asked"), [("1.36", [0, 0, 0]), ("1.37", [1, 1, 2])])
def test_since_1_37_a_pod_that_stays_gated_is_tried_again_every_five_minutes(version: str, asked: list[int]) -> None:
    evictions = Evictions()
    queue = queue_for(Scheduler(kube_version=version), is_preempting=evictions)
    queue.add(Pod(name="a", uid="a"), 0.0)
    evictions.asked = 0
    counts = []
    for now in (301.0, 331.0, 602.0):
        queue.flush_waiting(now)
        counts.append(evictions.asked)
    assert counts == asked
    found = queue.find("default/a")
    assert found is not None
    assert found[1].was_flushed is (version == "1.36")


@pytest.mark.parametrize(("version", "until"), [("1.33", 104.0), ("1.34", 101.0)])
def test_until_1_33_errors_and_refusals_lengthen_the_same_backoff(version: str, until: float) -> None:
    queue = queue_for(Scheduler(kube_version=version))
    queue.add(Pod(name="a", uid="a"), 0.0)
    for now, refused_by in ((0.0, ()), (10.0, ()), (100.0, ("NodeResourcesFit",))):
        queue.flush_backoff(now)
        queued = queue.pop()
        assert queued is not None
        queue.add_unschedulable(queued, now, refused_by=refused_by)
    queue.move_all(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), Pod(name="b", node_name="n1"), None, 100.5)
    found = queue.find("default/a")
    assert found is not None
    assert (found[0], found[1].backoff_until) == (Room.BACKOFF, until)


@pytest.mark.parametrize(("version", "asked"), [("1.33", 1), ("1.34", 0)])
def test_until_1_33_an_event_for_another_plugin_that_refused_a_gated_pod_asks_its_gate_again(
    version: str, asked: int
) -> None:
    evictions = Evictions()
    queue = queue_for(Scheduler(kube_version=version), is_preempting=evictions)
    evictions.are_running = False
    queue.add(Pod(name="a", uid="a"), 0.0)
    queued = queue.pop()
    assert queued is not None
    queue.add_unschedulable(queued, 0.0, refused_by=("NodeResourcesFit",))
    evictions.are_running = True
    added = ClusterEvent(Resource.NODE, Action.ADD)
    node = Node(name="n1", allocatable={"cpu": 1000, "pods": 10})
    queue.move_all(added, None, node, 10.0)
    evictions.asked = 0
    queue.move_all(added, None, node, 20.0)
    assert evictions.asked == asked


@pytest.mark.parametrize("version", ["1.33", "1.34"])
def test_an_event_does_not_reach_a_pod_with_scheduling_gates(version: str) -> None:
    queue = queue_for(Scheduler(kube_version=version))
    queue.add(Pod(name="a", uid="a", spec=PodSpec(scheduling_gates=("g",))), 0.0)
    queue.move_all(ClusterEvent(Resource.NODE, Action.ADD), None, Node(name="n1", allocatable={"pods": 10}), 10.0)
    assert queue.find("default/a") is not None
    assert queue.pods_in(Room.ACTIVE) == ()


@pytest.mark.parametrize(("version", "room"), [("1.32", Room.ACTIVE), ("1.33", Room.WAITING)])
def test_since_1_33_a_pod_waits_while_its_victims_are_evicted(version: str, room: Room) -> None:
    queue = queue_for(Scheduler(kube_version=version), is_preempting=Evictions())
    assert queue.add(Pod(name="a", uid="a"), 0.0) is room
