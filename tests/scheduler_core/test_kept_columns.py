"""Tests the law of kept masks and columns. Plugins declare what theirs depend on: the nodes (`NodeRulePlugin`), the
nodes and the requests on them (`UsageRulePlugin`), pods that a selector chooses (`Tally`), a node with its pods
(`FiltersBySpec`). After any changes, a pod's cycle gives what it gives in a snapshot that was loaded anew and keeps
nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core import ClusterCache, Scheduler, pod_from_manifest
from scheduler_core.framework.scoring import by_usage
from scheduler_core.judge.answer import as_answer
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.pods import placements

Json = dict[str, Any]
SCHEDULER = Scheduler()
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NODES = ("n0", "n1", "n2", "n3")
PODS = tuple(f"p{number}" for number in range(8))


def _of(app: str) -> Json:
    return {"matchLabels": {"app": app}}


def _near(app: str, key: str) -> Json:
    return {"topologyKey": key, "labelSelector": _of(app)}


def _spread(key: str, action: str, skew: int) -> Json:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": _of("spread")}


KINDS: dict[str, Json] = {
    "plain": {},
    "large": {},
    "spread": {"topologySpreadConstraints": [_spread(ZONE, "DoNotSchedule", 1), _spread(HOST, "ScheduleAnyway", 1)]},
    "apart": {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_near("apart", HOST)]}}
    },
    "drawn": {
        "affinity": {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 50, "podAffinityTerm": _near("plain", ZONE)}
                ]
            }
        }
    },
    "choosy": {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "containers": [{"name": "c", "image": "web:1", "ports": [{"containerPort": 80, "hostPort": 80}]}],
    },
    "urgent": {"priority": 10},
    "urgent and choosy": {
        "priority": 10,
        "nodeSelector": {"disk": "ssd"},
        "containers": [{"name": "c", "image": "web:1", "ports": [{"containerPort": 80, "hostPort": 80}]}],
    },
    "stored": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
}
"""The specs of equal pods; each kind has its own label `app`."""


def pod_of(kind: str, name: str, node: str = "") -> Json:
    cpu = "1500m" if kind == "large" else "3600m" if "urgent" in kind else "500m"
    requests = {"cpu": cpu, "memory": "256Mi"}
    spec: Json = {"containers": [{"name": "c", "image": "web:1", "resources": {"requests": requests}}], **KINDS[kind]}
    meta = {"name": name, "namespace": "default", "uid": f"{name}-{kind}", "labels": {"app": kind.replace(" ", "-")}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {**spec, **({"nodeName": node} if node else {})},
        # Which of several equal pods preemption spares depends on their order, which no list of pods shows.
        "status": {"startTime": f"2026-01-01T00:00:0{name[1:]}Z"} if name in PODS else {},
    }


def node_of(
    name: str, *, zone: str = "a", cpu: int = 4, disk: str = "ssd", taint: str = "", cordoned: bool = False
) -> Json:
    room = {"cpu": str(cpu), "memory": "8Gi", "pods": "10"}
    spec: Json = {"unschedulable": cordoned}
    if taint:
        spec["taints"] = [{"key": "dedicated", "value": "x", "effect": taint}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: zone, "disk": disk}},
        "spec": spec,
        "status": {"allocatable": room, "images": [{"names": ["web:1"], "sizeBytes": cpu * 10**8}]},
    }


SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "plain", "namespace": "default"},
    "spec": {"selector": {"app": "plain"}},
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default", "uid": "data"},
    "spec": {"volumeName": "disk", "storageClassName": "", "accessModes": ["ReadWriteOnce"]},
}


def volume_in(zone: str) -> Json:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "claimRef": {"name": "data", "namespace": "default", "uid": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


class Followed:
    """A cache that follows changes, and the objects as they are now."""

    def __init__(self) -> None:
        self.cache = ClusterCache()
        self.objects: dict[tuple[str, str], Json] = {}
        for number, name in enumerate(NODES):
            self.put(node_of(name, zone="ab"[number % 2]))
            self.put(pod_of("plain", PODS[number], name))

    def put(self, manifest: Json) -> None:
        key = manifest["kind"], manifest["metadata"]["name"]
        event = {"type": "MODIFIED" if key in self.objects else "ADDED", "object": manifest}
        self.cache.apply(json.dumps(event).encode())
        self.objects[key] = manifest

    def drop(self, kind: str, name: str) -> None:
        gone = self.objects.pop((kind, name), None)
        if gone is not None:
            self.cache.apply({"type": "DELETED", "object": gone})

    def place(self, kind: str, name: str, node: str) -> None:
        """As the scheduler does: the pod is assumed to be there before the API server shows it."""
        self.drop("Pod", name)
        self.put(pod_of(kind, name))
        if ("Node", node) in self.objects:
            self.cache.assume(f"default/{name}", node)
            self.objects["Pod", name] = pod_of(kind, name, node)

    def terminate(self, name: str) -> None:
        held = self.objects.get(("Pod", name))
        if held is not None:
            self.put({**held, "metadata": {**held["metadata"], "deletionTimestamp": "2026-11-27T00:00:00Z"}})

    def runs(self, name: str, *, is_ready: bool) -> None:
        """The kubelet writes the status: nothing that counts for other pods."""
        held = self.objects.get(("Pod", name))
        if held is not None:
            ready = {"type": "Ready", "status": str(is_ready)}
            self.put({**held, "status": {**held["status"], "phase": "Running", "conditions": [ready]}})

    def decides_as_one_read_anew(self) -> None:
        snapshot = self.cache.snapshot()
        row = {name: number for number, name in enumerate(snapshot.node_names)}
        nodes = [self.objects["Node", name] for name in row]
        fresh = load_objects([*nodes, *(each for (kind, _), each in self.objects.items() if kind != "Node")])
        fresh.columns.__dict__["tree_order"] = snapshot.columns.tree_order.copy()
        for kind in KINDS:
            pod = INCOMING[kind]
            assert _told(SCHEDULER.schedule(snapshot, pod)) == _told(SCHEDULER.schedule(fresh, pod)), kind


def _told(result: Any) -> Any:
    by_plugin = (
        {} if result.table is None else {name: column.tolist() for name, column in result.table.by_plugin.items()}
    )
    return json.loads(json.dumps(as_answer(result))), by_plugin, result.best


INCOMING = {kind: pod_from_manifest(pod_of(kind, "new")) for kind in KINDS}
"""Always the same, because much is kept with the spec."""
Change = Callable[[Followed], None]
_NODE = st.sampled_from(NODES)
_POD = st.sampled_from(PODS)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(
        lambda kind, name, node: lambda world: world.place(kind, name, node),
        st.sampled_from(sorted(KINDS)),
        _POD,
        _NODE,
    ),
    st.builds(lambda name: lambda world: world.drop("Pod", name), _POD),
    st.builds(lambda name: lambda world: world.terminate(name), _POD),
    st.builds(lambda name, ready: lambda world: world.runs(name, is_ready=ready), _POD, st.booleans()),
    st.builds(
        lambda name, **now: lambda world: world.put(node_of(name, **now)),
        _NODE,
        zone=st.sampled_from("ab"),
        cpu=st.integers(1, 4),
        disk=st.sampled_from(("ssd", "hdd")),
        taint=st.sampled_from(("", "", "NoSchedule", "PreferNoSchedule")),
        cordoned=st.sampled_from((False, False, True)),
    ),
    st.builds(lambda name: lambda world: world.drop("Node", name), _NODE),
    st.builds(
        lambda objects: lambda world: [world.put(each) for each in objects],
        st.sampled_from(([SERVICE], [CLAIM, volume_in("a")], [CLAIM, volume_in("b")])),
    ),
    st.builds(
        lambda key: lambda world: world.drop(*key),
        st.sampled_from((("Service", "plain"), ("PersistentVolumeClaim", "data"), ("PersistentVolume", "disk"))),
    ),
)


@settings(max_examples=40, deadline=None)
@given(changes=st.lists(CHANGES, min_size=1, max_size=12), changes_per_table=st.sampled_from((2, 2048)))
def test_a_cycle_with_kept_masks_and_columns_decides_as_one_without(
    changes: list[Change], changes_per_table: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placements, "_CHANGES_PER_TABLE", changes_per_table)
        patch.setattr(by_usage, "_FEWEST_NODES", 1)
        world = Followed()
        world.decides_as_one_read_anew()
        for change in changes:
            change(world)
            if any(kind == "Node" for kind, _ in world.objects):
                world.decides_as_one_read_anew()


def test_what_was_kept_for_all_nodes_is_not_used_when_some_are_refused() -> None:
    world = Followed()
    for node in ("", "n1", "n2"):
        if node:
            world.place("apart", f"on-{node}", node)
        for _ in range(3):
            world.decides_as_one_read_anew()
