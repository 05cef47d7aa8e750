"""Tests the active queue, and the events that it records during scheduling attempts."""

from scheduler_core.model.pod import Pod
from scheduler_core.queue.active import ActiveRoom
from scheduler_core.queue.events import Action, ClusterEvent, Resource
from scheduler_core.queue.queued_pod import QueuedPod

NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)


def queued(name: str, at: float = 0.0) -> QueuedPod:
    return QueuedPod(pod=Pod(name=name, uid=f"uid-{name}"), timestamp=at)


def room() -> ActiveRoom:
    return ActiveRoom(lambda one, other: one.timestamp < other.timestamp)


def test_each_pod_in_flight_gets_the_events_since_it_was_popped() -> None:
    active, first, second = room(), queued("first"), queued("second")
    active.note(NODE_ADDED, None, "before anybody")
    active.begin(first)
    active.note(NODE_ADDED, None, "one")
    active.begin(second)
    active.note(NODE_ADDED, None, "two")
    assert [h.new for h in active.happened_since_taken(first.pod) or ()] == ["one", "two"]
    assert [h.new for h in active.happened_since_taken(second.pod) or ()] == ["two"]
    assert active.happened_since_taken(queued("stranger").pod) is None


def test_the_queue_forgets_events_that_no_pod_in_flight_needs() -> None:
    active, first, second = room(), queued("first"), queued("second")
    active.begin(first)
    active.note(NODE_ADDED, None, 1)
    active.begin(second)
    active.note(NODE_ADDED, None, 2)
    active.done(second.pod)
    assert len(active._happenings) == 2
    active.begin(second)
    active.done(first.pod)
    assert len(active._happenings) == 0
    active.done(second.pod)
    active.note(NODE_ADDED, None, 3)
    assert (len(active._happenings), active.in_flight) == (0, ())


def test_a_pod_cannot_be_in_flight_twice() -> None:
    active, pod = room(), queued("a")
    assert (active.begin(pod), active.begin(pod), pod.attempts) == (True, False, 2)


def test_a_recreated_pod_of_the_same_name_is_another_pod() -> None:
    active = room()
    assert active.begin(QueuedPod(pod=Pod(name="a", uid="1"), timestamp=0))
    assert active.begin(QueuedPod(pod=Pod(name="a", uid="2"), timestamp=0))


def test_the_end_of_one_attempt_keeps_the_events_that_an_older_attempt_still_needs() -> None:
    active, first, second, third = room(), queued("first"), queued("second"), queued("third")
    active.begin(first)
    active.note(NODE_ADDED, None, "one")
    active.begin(second)
    active.begin(third)
    active.done(third.pod)
    assert [h.new for h in active.happened_since_taken(first.pod) or ()] == ["one"]
