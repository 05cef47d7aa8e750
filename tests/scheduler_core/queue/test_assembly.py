"""Tests queue, cycle and the handling of failed cycles together, from a pod's arrival to its binding."""

from typing import Any

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import Verdict, unschedulable
from scheduler_core.model.pod import Pod
from scheduler_core.queue.assembly import queue_for
from scheduler_core.queue.events import (
    ASSIGNED_POD_ADDED,
    ASSIGNED_POD_DELETED,
    Action,
    ClusterEvent,
    EventHint,
    Resource,
)
from scheduler_core.queue.failed_cycle import FailedCycle, handle_failed_cycle
from scheduler_core.queue.hints.changes import node_changes, pod_changes
from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod
from tests.scheduler_core.plugins.asking import claim, storage_class, using, volume


class World:
    """A cluster with one scheduler, which runs one scheduling cycle at a time."""

    def __init__(self, *objects: Any, scheduler: Scheduler | None = None) -> None:
        self.scheduler = scheduler or Scheduler()
        self.snapshot = load_objects([each.manifest if hasattr(each, "manifest") else each for each in objects])
        assert not self.snapshot.problems, self.snapshot.problems
        self.queue = queue_for(self.scheduler)

    def arrive(self, pod: Any, now: float) -> Pod:
        built: Pod = pod.build()
        self.queue.add(built, now)
        return built

    def step(self, now: float) -> str | FailedCycle | None:
        """Runs a scheduling cycle for the next pod of the queue. Returns the name of the pod's node, or a
        `FailedCycle`, or None if no pod may be tried now.
        """
        queued = self.queue.pop()
        if queued is None:
            return None
        result = self.scheduler.schedule(self.snapshot, queued.pod, nominated=self.queue.nominations.by_node)
        if result.node is None:
            return handle_failed_cycle(self.queue, queued, result, now)
        self.snapshot = self.scheduler.place(self.snapshot, result)
        self.queue.done(queued.pod)
        self.queue.nominations.remove(queued.pod)
        self.queue.move_all(ASSIGNED_POD_ADDED, None, self.snapshot.pod(queued.key), now)
        return result.node

    def delete(self, key: str, now: float) -> None:
        gone = self.snapshot.pod(key)
        self.snapshot = self.snapshot.without_pod(key)
        self.queue.move_all(ASSIGNED_POD_DELETED, gone, None, now)


SMALL = a_node("n1").offering(cpu="1", memory="1Gi", pods="10")


def test_a_preempting_pod_waits_for_its_victim_and_lands_on_its_nominated_node() -> None:
    world = World(SMALL, a_pod("old").requesting(cpu="1").with_priority(1).on("n1"))
    world.arrive(a_pod("new").requesting(cpu="1").with_priority(100), 0.0)
    failed = world.step(0.1)
    assert isinstance(failed, FailedCycle)
    assert (failed.nominated_node, failed.room) == ("n1", Room.WAITING)
    assert world.step(0.2) is None
    world.delete("default/old", 30.0)
    assert world.step(30.1) == "n1"
    assert world.queue.nominations.all == ()


def test_a_pod_of_lower_priority_does_not_take_the_room_of_a_nominated_pod() -> None:
    world = World(SMALL, a_pod("old").requesting(cpu="1").with_priority(1).on("n1"))
    world.arrive(a_pod("new").requesting(cpu="1").with_priority(100), 0.0)
    world.step(0.1)
    world.delete("default/old", 0.2)  # the preemptor must still sit out its back-off
    world.arrive(a_pod("sneaky").requesting(cpu="1").with_priority(50), 0.3)
    sneaky = world.step(0.4)
    assert isinstance(sneaky, FailedCycle)
    assert sneaky.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert world.step(2.0) == "n1"
    assert world.snapshot.pod("default/new").node_name == "n1"


def test_an_unschedulable_pod_is_retried_when_a_node_with_room_is_added() -> None:
    world = World(SMALL)
    world.arrive(a_pod("big").requesting(cpu="2"), 0.0)
    assert isinstance(world.step(0.1), FailedCycle)
    event = ClusterEvent(Resource.NODE, Action.ADD)
    world.queue.move_all(event, None, a_node("tiny").offering(cpu="1", memory="1Gi", pods="1").build(), 30.0)
    assert world.step(30.1) is None
    large = a_node("n2").offering(cpu="4", memory="1Gi", pods="10")
    world.snapshot = load_objects([SMALL.manifest, large.manifest])
    world.queue.move_all(event, None, large.build(), 31.0)
    assert world.step(31.1) == "n2"


def test_an_uncordon_wakes_pods_that_were_refused_because_of_the_cordon() -> None:
    world = World(SMALL.cordoned())
    world.arrive(a_pod("new"), 0.0)
    assert isinstance(world.step(0.1), FailedCycle)
    before, after = world.snapshot.node("n1"), SMALL.build()
    world.snapshot = load_objects([SMALL.manifest])
    for event in node_changes(before, after):
        world.queue.move_all(event, before, after, 30.0)
    assert world.step(30.1) == "n1"


def test_a_gated_pod_is_scheduled_after_its_gate_is_removed() -> None:
    world = World(SMALL)
    gated = world.arrive(a_pod("new").with_field("spec.schedulingGates", [{"name": "quota"}]), 0.0)
    assert world.step(1.0) is None
    freed = a_pod("new").build()
    world.queue.update(gated, freed, pod_changes(gated, freed), 2.0)
    assert world.step(2.1) == "n1"


def test_two_pods_are_not_given_the_same_volume() -> None:
    nodes = [a_node(name) for name in ("n1", "n2")]
    world = World(*nodes, claim("one"), claim("two"), storage_class(), volume("pv-1"), volume("pv-2"))
    for index, name in enumerate(("one", "two")):
        world.arrive(a_pod(name).with_field("spec.volumes", using(name)), float(index))
    assert world.step(2.0) is not None
    assert world.step(2.1) is not None
    promised = {volume.name: volume.claim and volume.claim.name for volume in world.snapshot.objects.volumes.values()}
    assert sorted(map(str, promised.values())) == ["one", "two"]


def test_the_second_pod_reports_that_no_volume_is_left() -> None:
    world = World(SMALL, claim("one"), claim("two"), storage_class(), volume("pv-1"))
    for index, name in enumerate(("one", "two")):
        world.arrive(a_pod(name).with_field("spec.volumes", using(name)), float(index))
    assert world.step(2.0) == "n1"
    failed = world.step(2.1)
    assert isinstance(failed, FailedCycle)
    assert "1 node(s) didn't find available persistent volumes to bind" in failed.message


def test_the_backoff_times_come_from_the_configuration() -> None:
    scheduler = Scheduler(
        Configuration.from_mapping({"podInitialBackoffSeconds": 7, "podMaxBackoffSeconds": 9}), kube_version="1.32"
    )
    world = World(scheduler=scheduler)  # no nodes: counts as an error, so the pod backs off
    world.arrive(a_pod("new"), 100.0)
    world.step(100.0)
    world.queue.flush_backoff(107.0)
    assert world.queue.pods_in(Room.ACTIVE) == ()
    world.queue.flush_backoff(107.1)
    assert [pod.name for pod in world.queue.pods_in(Room.ACTIVE)] == ["new"]


def test_each_profile_has_its_own_hints() -> None:
    profiles = [
        {"schedulerName": "a"},
        {"schedulerName": "b", "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}},
    ]
    queue = queue_for(Scheduler(Configuration.from_mapping({"profiles": profiles})))
    a, b = (queue.profile(name).hints.by_plugin for name in ("a", "b"))
    assert set(a) - set(b) == {"NodeResourcesFit"}
    assert {keeper.name for keeper in queue.profile("a").gatekeepers} == {
        "SchedulingGates",
        "DynamicResources",
        "DefaultPreemption",
    }


class NeedsLicence:
    name = "NeedsLicence"

    def filter(self, state: object, pod: Pod, node_info: object) -> Verdict:
        return unschedulable("no licence server yet")

    def events(self) -> tuple[EventHint, ...]:
        return (EventHint(ASSIGNED_POD_ADDED),)


def test_a_plugin_of_ones_own_hears_of_every_bound_pod_that_it_registered_for() -> None:
    scheduler = Scheduler(
        Configuration.from_mapping(
            {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "NeedsLicence"}]}}}]}
        ),
        plugins={"NeedsLicence": lambda _args, _version: NeedsLicence()},
    )
    world = World(a_node("n1"), scheduler=scheduler)
    pod = world.arrive(a_pod("waits"), 0.0)
    world.step(0.0)
    world.queue.move_all(ASSIGNED_POD_ADDED, None, a_pod("server").on("n1").build(), 100.0)
    found = world.queue.find(pod.key)
    assert found is not None
    assert found[0] is Room.ACTIVE
