"""Tests the three parts of the scheduling queue, and how pods move between them."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.queue.backoff import BackoffPolicy
from scheduler_core.queue.events import Action, ClusterEvent, EventHint, Resource, never
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.queue.scheduling_queue import ProfileInQueue, Room, SchedulingQueue
from scheduler_core.queue.waiting import RegisteredHints

NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)
NODE_GONE = ClusterEvent(Resource.NODE, Action.DELETE)
POD_GONE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
GATES_GONE = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


class Gates:
    name = "Gates"

    def pre_enqueue(self, pod: Pod) -> Verdict:
        return unresolvable("gated") if pod.spec.scheduling_gates else SUCCESS


class Doorman:
    """A PreEnqueue plugin that refuses every pod while `lets_in` is False."""

    name = "Doorman"

    def __init__(self) -> None:
        self.lets_in = True
        self.asked: list[str] = []

    def pre_enqueue(self, pod: Pod) -> Verdict:
        self.asked.append(pod.name)
        return SUCCESS if self.lets_in else unresolvable("closed")


def broken(_pod: Pod, _old: Any, _new: Any) -> bool:
    raise RuntimeError("a hint with a bug")


HINTS = RegisteredHints(
    by_plugin={
        "Fit": (
            EventHint(ClusterEvent(Resource.NODE, Action.ADD), lambda pod, old, new: new == f"room for {pod.name}"),
        ),
        "Patient": (EventHint(ClusterEvent(Resource.NODE, Action.ADD)),),
        "Broken": (EventHint(ClusterEvent(Resource.NODE, Action.ADD), broken),),
        "Gates": (EventHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)),),
        "Doorman": (EventHint(ClusterEvent(Resource.POD, Action.DELETE), never),),
        "InterPodAffinity": (EventHint(ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL)),),
    }
)


def order(one: QueuedPod, other: QueuedPod) -> bool:
    return (-one.pod.priority, one.timestamp) < (-other.pod.priority, other.timestamp)


def queue(*gatekeepers: Any, **settings: Any) -> SchedulingQueue:
    return SchedulingQueue(
        order, {"default-scheduler": ProfileInQueue(gatekeepers=gatekeepers or (Gates(),), hints=HINTS)}, **settings
    )


def pod(name: str, *, priority: int = 0, gates: tuple[str, ...] = (), **fields: Any) -> Pod:
    return Pod(name=name, uid=f"uid-{name}", spec=PodSpec(priority=priority, scheduling_gates=gates), **fields)


def taken(line: SchedulingQueue) -> QueuedPod:
    queued = line.pop()
    assert queued is not None
    return queued


def names(line: SchedulingQueue, room: Room) -> list[str]:
    return sorted(p.name for p in line.pods_in(room))


def refuse(line: SchedulingQueue, name: str, *plugins: str, at: float, pending_for: tuple[str, ...] = ()) -> Room:
    """Adds a pod to the queue, pops it, and puts it back as refused."""
    line.add(pod(name), at)
    queued = line.pop_pod(f"default/{name}", at)
    assert queued is not None
    return line.add_unschedulable(queued, at, refused_by=plugins, pending_for=pending_for)


# ---- counting, as kube-scheduler's metrics do ----


def test_each_way_into_a_part_of_the_queue_is_counted_with_its_reason() -> None:
    line = queue()
    refuse(line, "a", "Fit", at=100.0)
    line.move_all(NODE_ADDED, None, "room for a", 100.5)
    line.flush_backoff(102.0)
    refuse(line, "b", "Fit", at=103.0)
    line.flush_waiting(1000.0)
    line.add(pod("c", gates=("wait",)), 1000.0)
    assert dict(line.incoming) == {
        ("active", "UnschedulablePodAdd"): 2,
        ("unschedulable", "ScheduleAttemptFailure"): 2,
        ("backoff", "NodeAdd"): 1,
        ("active", "BackoffComplete"): 1,
        ("active", "UnschedulableTimeout"): 1,
        ("unschedulable", "UnschedulablePodAdd"): 1,
    }


def test_a_pod_popped_before_its_backoff_ends_and_an_activated_one_are_counted_apart() -> None:
    line = queue()
    refuse(line, "a", "Fit", at=100.0)
    line.move_all(NODE_ADDED, None, "room for a", 100.1)
    taken(line)
    assert line.incoming["active", "PopFromBackoffQ"] == 1
    refuse(line, "b", "Fit", at=100.0)
    line.activate([pod("b")], 100.1)
    assert line.incoming["active", "ForceActivate"] == 1


def test_a_refused_pod_counts_for_each_plugin_until_it_is_tried_again() -> None:
    line = queue()
    refuse(line, "a", "Fit", at=100.0, pending_for=("Patient",))
    assert line.refusals() == {("Fit", "default-scheduler"): 1, ("Patient", "default-scheduler"): 1}
    line.activate([pod("a")], 101.0)
    assert line.refusals()["Fit", "default-scheduler"] == 1
    taken(line)
    assert line.refusals() == {}


def test_the_events_kept_for_pods_in_flight_are_counted() -> None:
    line = queue()
    line.add(pod("a"), 1.0)
    queued = taken(line)
    line.move_all(NODE_ADDED, None, "room", 1.0)
    assert line.events_kept() == {"PodPopped": 1, "NodeAdd": 1}
    line.done(queued.pod)
    assert line.events_kept() == {"PodPopped": 0}


# ---- order ----


def test_pods_are_popped_by_priority_and_then_by_queueing_time() -> None:
    line = queue()
    for name, priority, at in (("late", 0, 3.0), ("early", 0, 1.0), ("important", 7, 9.0)):
        line.add(pod(name, priority=priority), at)
    assert [taken(line).pod.name for _ in range(3)] == ["important", "early", "late"]
    assert line.pop() is None


def test_a_returned_pod_comes_after_queued_pods_of_equal_priority() -> None:
    line = queue(policy=BackoffPolicy(max_seconds=0))
    line.add(pod("a"), 1.0)
    line.add(pod("b"), 2.0)
    line.add_unschedulable(taken(line), 3.0)
    assert [taken(line).pod.name for _ in range(2)] == ["b", "a"]


# ---- back-off ----


def test_a_refused_pod_waits_for_an_event_and_then_for_its_backoff() -> None:
    line = queue()
    assert refuse(line, "a", "Fit", at=100.0) is Room.WAITING
    line.move_all(NODE_ADDED, None, "room for a", 100.5)
    assert names(line, Room.BACKOFF) == ["a"]
    line.flush_backoff(101.0)
    assert names(line, Room.BACKOFF) == ["a"]
    line.flush_backoff(102.0)
    assert names(line, Room.ACTIVE) == ["a"]


def test_an_event_after_the_backoff_makes_a_pod_active_at_once() -> None:
    line = queue()
    refuse(line, "a", "Fit", at=100.0)
    line.move_all(NODE_ADDED, None, "room for a", 102.0)
    assert names(line, Room.ACTIVE) == ["a"]


def test_an_idle_scheduler_pops_the_next_pod_before_its_backoff_ends() -> None:
    line = queue()
    refuse(line, "a", "Fit", at=100.0)
    line.move_all(NODE_ADDED, None, "room for a", 100.1)
    line.add(pod("b"), 100.2)
    assert [taken(line).pod.name, taken(line).pod.name, line.pop()] == ["b", "a", None]


def test_before_1_33_no_pod_is_popped_before_its_backoff_ends() -> None:
    line = queue(policy=BackoffPolicy(aligned=False))
    refuse(line, "a", "Fit", at=100.0)
    line.move_all(NODE_ADDED, None, "room for a", 100.1)
    assert (names(line, Room.BACKOFF), line.pop()) == (["a"], None)


def test_a_pod_waits_for_its_whole_backoff_after_an_error() -> None:
    line = queue()
    assert refuse(line, "a", at=100.0) is Room.BACKOFF
    assert line.pop() is None
    line.flush_backoff(102.0)
    assert taken(line).pod.name == "a"


def test_refusals_and_errors_are_counted_separately() -> None:
    line = queue(policy=BackoffPolicy(max_seconds=0))
    line.add(pod("a"), 0.0)
    counts = []
    for plugins in (("Fit",), (), (), ("Fit",)):
        queued = line.pop_pod("default/a", 0.0)
        assert queued is not None
        line.add_unschedulable(queued, 0.0, refused_by=plugins)
        counts.append((queued.unschedulable_count, queued.consecutive_errors))
    assert counts == [(1, 0), (1, 1), (1, 2), (2, 0)]
    assert queued.attempts == 4


# ---- events and hints ----


@pytest.mark.parametrize(
    ("plugins", "event", "new", "moves"),
    [
        pytest.param(("Fit",), NODE_ADDED, "room for a", True, id="the hint of the refusing plugin says yes"),
        pytest.param(("Fit",), NODE_ADDED, "room for b", False, id="the hint of the refusing plugin says no"),
        pytest.param(("Fit",), NODE_GONE, "room for a", False, id="the refusing plugin did not register this event"),
        pytest.param(
            ("Other",),
            NODE_ADDED,
            "room for a",
            False,
            id="the hint of a plugin that did not refuse the pod is ignored",
        ),
        pytest.param(("Other", "Fit"), NODE_ADDED, "room for a", True, id="the hint of one of two plugins says yes"),
        pytest.param(("Broken",), NODE_ADDED, "x", True, id="a hint that raises an exception is treated as a yes"),
    ],
)
def test_an_event_moves_a_pod_only_if_the_event_may_help(
    plugins: tuple[str, ...], event: ClusterEvent, new: str, moves: bool
) -> None:
    line = queue()
    refuse(line, "a", *plugins, at=0.0)
    line.move_all(event, None, new, 100.0)
    assert names(line, Room.ACTIVE) == (["a"] if moves else [])


def test_a_pod_skips_its_backoff_if_an_event_comes_for_a_plugin_with_a_pending_verdict() -> None:
    line = queue()
    refuse(line, "a", "Fit", at=100.0, pending_for=("Patient",))
    line.move_all(NODE_ADDED, None, "no room", 100.1)
    assert names(line, Room.ACTIVE) == ["a"]


def test_an_event_does_not_move_a_pod_that_the_caller_excludes() -> None:
    line = queue()
    for name in ("a", "b"):
        refuse(line, name, "Patient", at=0.0)
    line.move_all(NODE_ADDED, None, None, 100.0, may_move=lambda waiting: waiting.name == "b")
    assert (names(line, Room.WAITING), names(line, Room.ACTIVE)) == (["a"], ["b"])


def test_a_refused_pod_enters_the_backoff_if_an_event_came_during_its_attempt() -> None:
    line = queue()
    line.add(pod("a"), 0.0)
    queued = taken(line)
    line.move_all(NODE_ADDED, None, "room for a", 1.0)
    assert line.add_unschedulable(queued, 2.0, refused_by=("Fit",)) is Room.BACKOFF


def test_a_refused_pod_ignores_events_from_before_its_attempt() -> None:
    line = queue()
    line.add(pod("a"), 0.0)
    line.add(pod("b", priority=1), 0.0)
    other = taken(line)
    line.move_all(NODE_ADDED, None, "room for a", 1.0)
    queued = taken(line)
    assert line.add_unschedulable(queued, 2.0, refused_by=("Fit",)) is Room.WAITING
    line.done(other.pod)
    assert line.in_flight == ()


def test_a_pod_that_no_event_helped_is_tried_again_after_five_minutes() -> None:
    line = queue()
    refuse(line, "a", "Fit", at=100.0)
    line.flush_waiting(400.0)
    assert names(line, Room.WAITING) == ["a"]
    line.flush_waiting(400.1)
    found = line.find("default/a")
    assert found is not None
    assert (found[0], found[1].was_flushed) == (Room.ACTIVE, True)


# ---- which pods an event asks about ----


def test_an_event_asks_only_the_hints_of_pods_that_a_registered_plugin_refused() -> None:
    asked: list[str] = []

    def note(pod: Pod, _old: Any, _new: Any) -> bool:
        asked.append(pod.name)
        return False

    hints = RegisteredHints(
        by_plugin={
            "Fit": (EventHint(NODE_ADDED, note),),
            "Other": (EventHint(POD_GONE, note),),
        }
    )
    line = SchedulingQueue(order, {"default-scheduler": ProfileInQueue(hints=hints)})
    refuse(line, "a", "Fit", at=0.0)
    refuse(line, "b", "Other", at=0.0)
    refuse(line, "c", "Other", "Fit", at=0.0)
    line.move_all(NODE_ADDED, None, None, 100.0)
    assert asked == ["a", "c"]


def test_pods_that_an_event_helps_become_active_in_the_order_in_which_they_were_refused() -> None:
    line = SchedulingQueue(lambda one, other: False, {"default-scheduler": ProfileInQueue(hints=HINTS)})
    for name, plugin in (("a", "Patient"), ("b", "Broken"), ("c", "Patient"), ("d", "Broken")):
        refuse(line, name, plugin, at=0.0)
    line.move_all(NODE_ADDED, None, None, 100.0)
    assert [queued.name for queued in line.pods_in(Room.ACTIVE)] == ["a", "b", "c", "d"]


def test_a_pod_that_another_plugin_refuses_now_is_no_longer_found_by_the_first_one() -> None:
    doorman = Doorman()
    line = queue(doorman)
    refuse(line, "a", "Patient", at=0.0)
    line.delete(pod("a"))
    doorman.lets_in = False
    line.add(pod("a"), 1.0)
    line.move_all(NODE_ADDED, None, None, 100.0)
    assert (names(line, Room.WAITING), names(line, Room.ACTIVE)) == (["a"], [])


# ---- gates ----


def test_a_gated_pod_enters_the_queue_only_after_its_gate_is_removed() -> None:
    line = queue()
    gated = pod("a", gates=("g",))
    assert line.add(gated, 0.0) is Room.WAITING
    line.move_all(NODE_ADDED, None, None, 400.0)
    line.flush_waiting(1000.0)
    assert names(line, Room.WAITING) == ["a"]
    assert line.update(gated, pod("a"), (GATES_GONE,), 1000.0) is Room.ACTIVE
    assert taken(line).is_gated is False


def test_a_pod_with_one_remaining_gate_stays_out_of_the_queue() -> None:
    line = queue()
    gated = pod("a", gates=("g", "h"))
    line.add(gated, 0.0)
    assert (
        line.update(gated, pod("a", gates=("h",)), (ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE),), 1.0)
        is Room.WAITING
    )


def test_a_pre_enqueue_plugin_runs_before_the_backoff_and_not_again_after_it() -> None:
    doorman = Doorman()
    line = queue(doorman)
    refuse(line, "a", "Fit", at=100.0)
    doorman.asked.clear()
    line.move_all(NODE_ADDED, None, "room for a", 100.1)
    line.flush_backoff(200.0)
    assert (doorman.asked, names(line, Room.ACTIVE)) == (["a"], ["a"])


def test_a_pre_enqueue_plugin_may_keep_a_pod_out_of_the_backoff_queue() -> None:
    doorman = Doorman()
    line = queue(doorman)
    refuse(line, "a", "Fit", at=100.0)
    doorman.lets_in = False
    line.move_all(NODE_ADDED, None, "room for a", 100.1)
    assert (names(line, Room.BACKOFF), names(line, Room.WAITING)) == ([], ["a"])


class NightPorter(Doorman):
    """A PreEnqueue plugin that checks a refused pod again whenever a node is added."""

    name = "Patient"


def test_a_pre_enqueue_plugin_runs_again_only_on_events_that_it_registered() -> None:
    porter = NightPorter()
    porter.lets_in = False
    line = queue(porter)
    line.add(pod("a"), 0.0)
    porter.asked.clear()
    line.move_all(POD_GONE, None, None, 1.0)
    line.flush_waiting(1000.0)
    assert porter.asked == []
    porter.lets_in = True
    line.move_all(NODE_ADDED, None, None, 1000.0)
    assert (porter.asked, names(line, Room.ACTIVE)) == (["a"], ["a"])


def test_only_activation_wakes_a_pod_that_a_pre_enqueue_plugin_refused() -> None:
    doorman = Doorman()
    line = queue(doorman)
    refuse(line, "a", "Fit", at=0.0)
    doorman.lets_in = False
    line.activate([pod("a")], 50.0)
    assert names(line, Room.WAITING) == ["a"]
    doorman.lets_in = True
    line.move_all(POD_GONE, None, None, 60.0)
    assert names(line, Room.WAITING) == ["a"]
    line.activate([pod("a")], 70.0)
    assert names(line, Room.ACTIVE) == ["a"]


# ---- activation ----


def test_an_activated_pod_skips_its_backoff() -> None:
    line = queue()
    refuse(line, "a", at=100.0)
    line.activate([pod("a"), pod("stranger")], 100.0)
    assert names(line, Room.ACTIVE) == ["a"]


def test_an_activated_pod_in_flight_enters_the_backoff_when_it_returns() -> None:
    line = queue()
    for name in ("a", "b"):
        line.add(pod(name), 0.0)
    first, second = taken(line), taken(line)
    line.activate([first.pod], 1.0)
    rooms = [line.add_unschedulable(queued, 2.0, refused_by=("Fit",)) for queued in (first, second)]
    assert rooms == [Room.BACKOFF, Room.WAITING]


# ---- updates and deletion ----


def test_a_changed_pod_moves_to_its_new_position() -> None:
    line = queue()
    line.add(pod("a"), 1.0)
    line.add(pod("b"), 2.0)
    line.update(pod("b"), pod("b", priority=3), (), 3.0)
    assert taken(line).pod.name == "b"


def test_a_refused_pod_enters_the_backoff_if_it_changed_during_its_attempt() -> None:
    line = queue()
    line.add(pod("a"), 0.0)
    queued = taken(line)
    event = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL)
    assert line.update(pod("a"), pod("a", labels={"x": "y"}), (event,), 1.0) is None
    assert line.add_unschedulable(queued, 2.0, refused_by=("InterPodAffinity",)) is Room.BACKOFF


def test_an_update_of_an_unknown_pod_adds_the_pod() -> None:
    assert queue().update(pod("a"), pod("a"), (), 0.0) is Room.ACTIVE


@pytest.mark.parametrize("room", list(Room))
def test_a_deleted_pod_leaves_every_part_of_the_queue(room: Room) -> None:
    line = queue()
    if room is Room.ACTIVE:
        line.add(pod("a"), 0.0)
    else:
        refuse(line, "a", *(("Fit",) if room is Room.WAITING else ()), at=100.0)
    assert names(line, room) == ["a"]
    line.delete(pod("a"))
    assert (len(line), line.find("default/a")) == (0, None)


def test_returning_a_pod_that_is_already_queued_is_refused() -> None:
    line = queue()
    line.add(pod("a"), 0.0)
    queued = taken(line)
    line.add(replace(pod("a"), uid="another"), 0.0)
    with pytest.raises(ValueError, match="default/a is already in the queue"):
        line.add_unschedulable(queued, 1.0)


def test_a_pod_stays_nominated_until_it_is_deleted() -> None:
    line = queue()
    nominated = pod("a", nominated_node_name="n1")
    line.add(nominated, 0.0)
    assert line.nominations.on("n1") == (nominated,)
    line.delete(nominated)
    assert line.nominations.all == ()
