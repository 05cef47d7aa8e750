"""An API server in memory with one watch, in front of the machine. Answers, events and commands wait until the test
lets them through."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

from scheduler_core.cycle import Scheduler
from scheduler_core.framework.runner import Nominated
from scheduler_core.model.pod import Pod
from scheduler_core.plugins.volume_binding import SELECTED_NODE
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
from scheduler_core.running.waiting.permits import WaitingPods
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot
from tests.scheduler_core.plugins.asking import claim, storage_class, volume

Json = dict[str, Any]

GOOD = "good"
LOST_BEFORE = "lost before it took effect"
LOST_AFTER = "lost after it took effect"
EMPTY = "200 {}"
TWICE = "answered twice"
LATE = "answered after it counted as lost"
REFUSALS = {"403": 403, "422": 422, "429": 429, "500": 500}
KINDS = {
    "Node": "v1",
    "Pod": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "StorageClass": "storage.k8s.io/v1",
}
FAULTS = (GOOD, LOST_BEFORE, LOST_AFTER, EMPTY, TWICE, LATE, *REFUSALS)


def node(name: str, cpu: int = 4) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}},
    }


def _copied(value: Any) -> Any:
    """A tenth of the time of copy.deepcopy."""
    return pickle.loads(pickle.dumps(value))


def on_node(name: str) -> Json:
    """The affinity of a volume that only this node can reach."""
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}}


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
        self.transitions = 0
        """Statuses that took effect and changed the time of PodScheduled."""
        self.written: Counter[str] = Counter()
        self.machine: Machine = self.start()

    # ---- the machine ----

    def start(self) -> Machine:
        """A new process: it knows only what it lists."""
        self.machine = self.new_machine()
        self.backlog.clear()
        self.open.clear()
        for kind in KINDS:
            self.collect(self.machine.take(self.listing(kind), self.now))
        return self.machine

    def new_machine(self) -> Machine:
        return Machine(self.scheduler, permits=self.permits)

    def listing(self, kind: str) -> Json:
        items = [_copied(each) for (of, _), each in sorted(self.objects.items()) if of == kind]
        return {"apiVersion": KINDS[kind], "kind": f"{kind}List", "items": items}

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
        self.backlog.append({"type": kind, "object": _copied(manifest)})
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

    def begin_deletion(self, name: str) -> None:
        """The pod's grace period begins, and the machine sees it."""
        pod = self.objects["Pod", name]
        pod["metadata"]["deletionTimestamp"] = "2026-11-27T00:00:00Z"
        self.put(pod)
        self.deliver()

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
        for kind in KINDS:
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
        if isinstance(command, PatchVolume):
            return self.patch_volume(command)
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
            self.transitions += command.changes_condition
        self.put(held)
        return WriteOutcome(code=200, version=self.version)

    def patch_volume(self, command: PatchVolume) -> WriteOutcome:
        held = self.objects.get((command.kind, command.key.rpartition("/")[2]))
        if held is None:
            return WriteOutcome(code=404)
        if str(command.version) != held["metadata"]["resourceVersion"]:
            return WriteOutcome(code=409)
        held["metadata"].setdefault("annotations", {}).update(dict(command.annotations))
        if command.claim:
            namespace, _, name = command.claim.partition("/")
            held["spec"]["claimRef"] = {"namespace": namespace, "name": name, "uid": command.claim_uid}
        self.put(held)
        return WriteOutcome(code=200, version=self.version)

    # ---- volume controllers ----

    def create_storage(self, provisioner: str = "csi.example") -> None:
        """The class `wait` of volumes that somebody creates, and the class `make` of volumes that are provisioned."""
        self.put(_copied(storage_class()), "ADDED")
        self.put(_copied(storage_class("make", provisioner=provisioner)), "ADDED")

    def create_claim(self, name: str, of: str = "make") -> str:
        """Returns its name."""
        self.put(_copied(claim(name, storage_class=of, metadata={"uid": f"uid-{name}-{self.version}"})), "ADDED")
        return name

    def create_volume(self, name: str, node: str | None = None) -> None:
        """Of the class `wait`; only this node can reach it if one is given."""
        made = _copied(volume(name))
        if node is not None:
            made["spec"]["nodeAffinity"] = on_node(node)
        self.put(made, "ADDED")

    def volumes_work(self, *, can_provision: bool = True) -> None:
        """What the controller of PersistentVolumes and the provisioners do."""
        for (kind, name), held in sorted(self.objects.items()):
            if kind == "PersistentVolume":
                self._bind_claim(held)
            elif kind == "PersistentVolumeClaim" and not held["spec"]["volumeName"]:
                node = held["metadata"]["annotations"].get(SELECTED_NODE)
                if node is None or held["spec"]["storageClassName"] != "make":
                    continue
                if not can_provision or ("Node", node) not in self.objects:
                    del held["metadata"]["annotations"][SELECTED_NODE]
                    self.put(held)
                    continue
                made = volume(f"pv-{name}", storage_class="make")
                made["spec"]["claimRef"] = {"namespace": "default", "name": name, "uid": held["metadata"]["uid"]}
                made["spec"]["nodeAffinity"] = on_node(node)
                self._bind_claim(self.put(made, "ADDED"))

    def _bind_claim(self, held: Json) -> None:
        wanted = held["spec"].get("claimRef")
        claimed = self.objects.get(("PersistentVolumeClaim", wanted["name"])) if wanted else None
        if claimed is None or claimed["metadata"]["uid"] != wanted["uid"] or claimed["spec"]["volumeName"]:
            return
        claimed["spec"]["volumeName"] = held["metadata"]["name"]
        claimed["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        claimed["status"]["phase"] = held["status"]["phase"] = "Bound"
        self.put(held)
        self.put(claimed)

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
                self.volumes_work()
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
        self.no_pod_is_bound_before_its_claims()

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
            each.key if isinstance(each, PatchVolume) else each.uid
            for each in self.open
            if not isinstance(each, LookAtPod) and each.number in known
        )
        assert not flying or max(flying.values()) == 1, f"two writes in flight: {flying}"

    def each_pod_is_in_one_place(self) -> None:
        """By what the cache knows."""
        parts = self.machine.parts
        rooms = {room: {each.key for each in parts.queue.pods_in(room)} for room in Room}
        for key in {f"default/{pod['metadata']['name']}" for pod in self.pods()}:
            pod = parts.cache.find("Pod", key)
            if pod is None or not parts.is_ours(pod) or pod.terminating:
                continue
            places = [room for room, keys in rooms.items() if key in keys]
            is_on_its_way = pod.uid in parts.bindings
            if pod.node_name:
                assert not places, f"{key} is bound and {places}"
                assert not is_on_its_way, f"{key} is bound and on its way"
            else:
                assert len(places) + is_on_its_way == 1, f"{key}: {places}, on its way: {is_on_its_way}"
                assert bool(parts.cache.assumed_node(key)) == is_on_its_way

    def no_pod_is_bound_before_its_claims(self) -> None:
        for pod in self.pods():
            node = pod["spec"].get("nodeName")
            for each in pod["spec"].get("volumes", ()) if node else ():
                name = each["persistentVolumeClaim"]["claimName"]
                held = self.objects["PersistentVolumeClaim", name]
                bound_to = self.objects.get(("PersistentVolume", held["spec"]["volumeName"]))
                assert bound_to is not None, f"{pod['metadata']['name']} is bound before its claim"
                assert node in repr(bound_to["spec"]["nodeAffinity"] or node), f"the volume of {name} is not on {node}"

    def what_fits_is_bound(self) -> None:
        fresh = load_objects(_copied(list(self.objects.values())))
        for pod in fresh.pending:
            if pod.spec.scheduling_gates or pod.spec.is_of_group:
                continue
            nominated = {each.nominated_node_name: (each,) for each in fresh.pending if each.nominated_node_name}
            assert self._node_for(fresh, pod, nominated) is None, f"{pod.key} fits"

    def _node_for(self, fresh: Snapshot, pod: Pod, nominated: Nominated) -> str | None:
        return self.scheduler.schedule(fresh, pod, nominated=nominated, preempts=False).node

    def the_cache_equals_a_fresh_load(self) -> None:
        cached, fresh = self.machine.parts.cache.snapshot(), load_objects(list(self.objects.values()))
        assert [_seen(pod) for pod in _sorted(cached)] == [_seen(pod) for pod in _sorted(fresh)]
        assert set(cached.node_names) == set(fresh.node_names)
        assert cached.objects.claims == fresh.objects.claims
        assert cached.objects.volumes == fresh.objects.volumes


SCHEDULER = Scheduler()


def _sorted(snapshot: Snapshot) -> list[Pod]:
    return sorted((*snapshot.placed_pods, *snapshot.pending), key=lambda pod: pod.key)


def _seen(pod: Pod) -> tuple[object, ...]:
    return pod.key, pod.uid, pod.node_name, pod.nominated_node_name, pod.terminating, pod.refusal, pod.spec.priority
