"""An API server in memory with one watch, in front of the machine. Answers, events and commands wait until the test
lets them through."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

from scheduler_core.cycle import Scheduler
from scheduler_core.model.pod import Pod
from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.running.commands import (
    Answered,
    Bind,
    Command,
    DeleteVictim,
    LookAtPod,
    PatchVolume,
    PostPodEvent,
    WriteStatus,
)
from scheduler_core.running.failures import LOST, WriteOutcome
from scheduler_core.running.machine import Machine
from scheduler_core.running.permits import WaitingPods
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot

Json = dict[str, Any]

GOOD = "good"
LOST_BEFORE = "lost before it took effect"
LOST_AFTER = "lost after it took effect"
EMPTY = "200 {}"
TWICE = "answered twice"
LATE = "answered after it counted as lost"
REFUSALS = {"403": 403, "422": 422, "429": 429, "500": 500}
FAULTS = (GOOD, LOST_BEFORE, LOST_AFTER, EMPTY, TWICE, LATE, *REFUSALS)


def node(name: str, cpu: int = 4) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}},
    }


def write_status(status: Json, command: WriteStatus) -> None:
    if command.reason:
        condition = {"type": "PodScheduled", "status": "False", "reason": command.reason, "message": command.message}
        status["conditions"] = [condition]
    if command.nominated_node is not None:
        status["nominatedNodeName"] = command.nominated_node


class World:
    def __init__(self, scheduler: Scheduler | None = None, permits: WaitingPods | None = None) -> None:
        self.scheduler = scheduler or SCHEDULER
        self.permits = permits
        self.now = 1000.0
        self.version = 10
        self.uids = 0
        self.objects: dict[tuple[str, str], Json] = {}
        self.backlog: list[Json] = []
        self.open: list[Answered] = []
        self.events: list[PostPodEvent] = []
        self.nomination_writes: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        self.machine: Machine = self.start()

    # ---- the machine ----

    def start(self) -> Machine:
        """A new process: it knows only what it lists."""
        self.machine = self.new_machine()
        self.backlog.clear()
        self.open.clear()
        for kind in ("Node", "Pod"):
            self.collect(self.machine.take(self.listing(kind), self.now))
        return self.machine

    def new_machine(self) -> Machine:
        return Machine(self.scheduler, permits=self.permits)

    def listing(self, kind: str) -> Json:
        items = [copy.deepcopy(each) for (of, _), each in sorted(self.objects.items()) if of == kind]
        return {"apiVersion": "v1", "kind": f"{kind}List", "items": items}

    def collect(self, commands: tuple[Command, ...]) -> None:
        for each in commands:
            if isinstance(each, Answered):
                self.open.append(each)
                self.written[type(each).__name__] += 1
                if isinstance(each, WriteStatus) and each.nominated_node is not None:
                    self.nomination_writes[each.uid] += 1
            elif isinstance(each, PostPodEvent):
                self.events.append(each)

    def run(self, steps: int = 1) -> None:
        for _ in range(steps):
            if not self.machine.has_work:
                return
            before = self.nomination_writes.copy()
            self.collect(self.machine.next(self.now))
            after = self.nomination_writes - before
            assert all(count == 1 for count in after.values()), "more than one nomination write in a cycle"

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.collect(self.machine.tick(self.now))

    # ---- the objects ----

    def put(self, manifest: Json, kind: str = "MODIFIED") -> Json:
        self.version += 1
        meta = manifest["metadata"]
        meta["resourceVersion"] = str(self.version)
        self.objects[manifest["kind"], meta["name"]] = manifest
        self.backlog.append({"type": kind, "object": copy.deepcopy(manifest)})
        return manifest

    def create_node(self, name: str, cpu: int = 4) -> None:
        self.put(node(name, cpu), "ADDED")

    def create_pod(self, name: str, cpu: int = 1, priority: int = 0, **spec: Any) -> str:
        self.uids += 1
        uid = f"{name}-{self.uids}"
        self.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "uid": uid, "labels": {"app": name[0]}},
                "spec": {
                    "schedulerName": "default-scheduler",
                    "priority": priority,
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}],
                    **spec,
                },
                "status": {"phase": "Pending"},
            },
            "ADDED",
        )
        return uid

    def remove(self, kind: str, name: str) -> None:
        gone = self.objects.pop((kind, name), None)
        if gone is not None:
            self.version += 1
            gone["metadata"]["resourceVersion"] = str(self.version)
            self.backlog.append({"type": "DELETED", "object": gone})

    def pod(self, name: str) -> Json | None:
        return self.objects.get(("Pod", name))

    def pods(self) -> list[Json]:
        return [each for (kind, _), each in sorted(self.objects.items()) if kind == "Pod"]

    def node_of(self, name: str) -> str:
        found = self.pod(name)
        return "" if found is None else str(found["spec"].get("nodeName") or "")

    # ---- the watch ----

    def deliver(self, count: int = 1_000_000) -> None:
        for event in self.backlog[:count]:
            self.collect(self.machine.take(event, self.now))
        del self.backlog[:count]

    def relist(self) -> None:
        """The watch broke, and what it would have told is lost."""
        self.backlog.clear()
        for kind in ("Node", "Pod"):
            self.collect(self.machine.take(self.listing(kind), self.now))

    # ---- commands ----

    def carry_out(self, index: int = 0, fault: str = GOOD) -> None:
        command = self.open.pop(index)
        if fault in REFUSALS:
            outcome = WriteOutcome(code=REFUSALS[fault], retry_after_seconds=3 if fault == "429" else 0)
        else:
            outcome = LOST if fault == LOST_BEFORE else self.effect(command)
            if fault == LOST_AFTER:
                outcome = LOST
            elif fault == EMPTY:
                outcome = WriteOutcome(code=200, is_complete=False)
        if fault == LATE:
            self.wait(31)
        self.collect(self.machine.answered(command, outcome, self.now))
        if fault == TWICE:
            self.collect(self.machine.answered(command, outcome, self.now))

    def effect(self, command: Answered) -> WriteOutcome:
        assert not isinstance(command, PatchVolume)
        name = command.pod.partition("/")[2]
        held = self.pod(name)
        if held is None:
            return WriteOutcome(code=404)
        uid = held["metadata"]["uid"]
        if isinstance(command, LookAtPod):
            return WriteOutcome(code=200, found_uid=uid, found_node=held["spec"].get("nodeName") or "")
        is_stale = isinstance(command, WriteStatus) and str(command.version) != held["metadata"]["resourceVersion"]
        if uid != command.uid or is_stale:
            return WriteOutcome(code=409)
        if isinstance(command, Bind):
            if held["spec"].get("nodeName") or held["metadata"].get("deletionTimestamp"):
                return WriteOutcome(code=409)
            held["spec"]["nodeName"] = command.node
            held["status"].pop("nominatedNodeName", None)
        elif isinstance(command, DeleteVictim):
            held["metadata"]["deletionTimestamp"] = "2026-11-27T00:00:00Z"
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
            held["status"]["conditions"] = [condition]
        elif isinstance(command, WriteStatus):
            write_status(held["status"], command)
        self.put(held)
        return WriteOutcome(code=200, version=self.version)

    # ---- kubelets ----

    def end_terminating(self) -> None:
        for pod in self.pods():
            if pod["metadata"].get("deletionTimestamp"):
                self.remove("Pod", pod["metadata"]["name"])

    def settle(self, seconds: int = 700) -> None:
        """Everything works from now on, until nothing moves."""
        for _ in range(seconds // 10):
            for _ in range(200):
                self.deliver()
                self.run(50)
                while self.open:
                    self.carry_out()
                self.end_terminating()
                if not self.backlog and not self.machine.has_work and not self.open:
                    break
            else:
                raise AssertionError("the machine never comes to rest")
            self.wait(10)

    # ---- laws ----

    def check(self) -> None:
        self.no_node_is_over_its_allocatable()
        self.one_write_in_flight_for_each_pod()
        self.each_pod_is_in_one_place()

    def no_node_is_over_its_allocatable(self) -> None:
        used: Counter[str] = Counter()
        for pod in self.pods():
            used[pod["spec"].get("nodeName") or ""] += int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for (kind, name), each in self.objects.items():
            if kind == "Node" and "shrunk" not in each["metadata"]:
                assert used[name] <= int(each["status"]["allocatable"]["cpu"]), f"{name} is over its allocatable"

    def one_write_in_flight_for_each_pod(self) -> None:
        known = {write.number for write in self.machine.parts.writes.in_flight}
        flying = Counter(
            each.uid for each in self.open if not isinstance(each, LookAtPod | PatchVolume) and each.number in known
        )
        assert not flying or max(flying.values()) == 1, f"two writes in flight: {flying}"

    def each_pod_is_in_one_place(self) -> None:
        """By what the cache knows."""
        parts = self.machine.parts
        for key in {f"default/{pod['metadata']['name']}" for pod in self.pods()}:
            pod = parts.cache.find("Pod", key)
            if pod is None or not parts.is_ours(pod) or pod.terminating:
                continue
            places = [room for room in Room if key in {each.key for each in parts.queue.pods_in(room)}]
            is_on_its_way = pod.uid in parts.bindings
            if pod.node_name:
                assert not places, f"{key} is bound and {places}"
                assert not is_on_its_way, f"{key} is bound and on its way"
            else:
                assert len(places) + is_on_its_way == 1, f"{key}: {places}, on its way: {is_on_its_way}"
                assert bool(parts.cache.assumed_node(key)) == is_on_its_way

    def what_fits_is_bound(self) -> None:
        fresh = load_objects(copy.deepcopy(list(self.objects.values())))
        for pod in fresh.pending:
            if pod.spec.scheduling_gates or pod.spec.is_of_group:
                continue
            nominated = {each.nominated_node_name: (each,) for each in fresh.pending if each.nominated_node_name}
            assert self.scheduler.schedule(fresh, pod, nominated=nominated).node is None, f"{pod.key} fits"

    def the_cache_equals_a_fresh_load(self) -> None:
        cached, fresh = self.machine.parts.cache.snapshot(), load_objects(list(self.objects.values()))
        assert [_seen(pod) for pod in _sorted(cached)] == [_seen(pod) for pod in _sorted(fresh)]
        assert set(cached.node_names) == set(fresh.node_names)


SCHEDULER = Scheduler()


def _sorted(snapshot: Snapshot) -> list[Pod]:
    return sorted((*snapshot.placed_pods, *snapshot.pending), key=lambda pod: pod.key)


def _seen(pod: Pod) -> tuple[object, ...]:
    return pod.key, pod.uid, pod.node_name, pod.nominated_node_name, pod.terminating, pod.refusal, pod.spec.priority
