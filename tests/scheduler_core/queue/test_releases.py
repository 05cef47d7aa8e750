"""What a scheduler's queue does otherwise in another release of kube-scheduler."""

from __future__ import annotations

import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.queue.assembly import queue_for
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
