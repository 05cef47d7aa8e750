"""Tests the law of the cache. After any events, the cache equals a snapshot that is loaded from the final objects, and
the nodes have the order of kube-scheduler's tree. Queries and simulations between the events change nothing."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduler_core import ClusterCache, Scheduler, Snapshot
from scheduler_core.framework.scoring import by_usage
from scheduler_core.judge.answer import as_answer
from scheduler_core.model.requests import RequestRules
from scheduler_core.simulation.movable import MovableTally
from scheduler_core.snapshot.pods import placements
from scheduler_core.snapshot.pods.tallies import HOST_PORTS, UsageTally
from scheduler_core.snapshot.pods.volume_users import VOLUME_USERS
from tests.scheduler_core.drawn_clusters import clusters, load_objects, nodes, pod_from_manifest, pods
from tests.scheduler_core.state_machines import play

Json = dict[str, Any]
SCHEDULER = Scheduler()
USAGE = UsageTally(RequestRules())
NODES = tuple(f"n{i}" for i in range(6))
PODS = tuple(f"p{i}" for i in range(8))
KEYS = ("topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack")


class GoTree:
    """kube-scheduler's tree of nodes, as in its source (pkg/scheduler/backend/cache/node_tree.go, v1.36)."""

    def __init__(self) -> None:
        self.tree: dict[str, list[str]] = {}
        self.zones: list[str] = []

    def add(self, name: str, zone: str) -> None:
        if zone not in self.tree:
            self.zones.append(zone)
            self.tree[zone] = []
        self.tree[zone].append(name)

    def remove(self, name: str, zone: str) -> None:
        self.tree[zone].remove(name)
        if not self.tree[zone]:
            del self.tree[zone]
            self.zones.remove(zone)

    def update(self, name: str, old: str, new: str) -> None:
        if old != new:
            self.remove(name, old)
            self.add(name, new)

    def list(self) -> list[str]:
        longest = max(map(len, self.tree.values()), default=0)
        return [self.tree[zone][turn] for turn in range(longest) for zone in self.zones if turn < len(self.tree[zone])]


def zone_of(manifest: Json) -> str:
    return str(manifest["metadata"]["labels"].get("topology.kubernetes.io/zone", ""))


def key_of(manifest: Json) -> tuple[str, str]:
    meta = manifest["metadata"]
    return manifest["kind"], f"{meta.get('namespace', '')}/{meta['name']}"


def seen_in(snapshot: Snapshot) -> Json:
    """Returns the whole content of a snapshot, so that two snapshots can be compared. Names replace internal numbers,
    because two equal snapshots may have different numbers."""
    columns, names = snapshot.columns, snapshot.node_names
    usage = snapshot.tally(USAGE).usage
    lines = {
        name: [columns.allocatable[line].tolist(), usage.requested[line].tolist()]
        for name, line in columns.resources.items()
    }
    taints, codes = columns.taint_sets
    topologies = {key: columns.labels.topology(key) for key in KEYS}
    return {
        "names": names,
        "nodes": columns.nodes,
        "row_of": dict(columns.row_of),
        "resources": lines,
        "allowed_pods": columns.allowed_pods.tolist(),
        "unschedulable": columns.unschedulable.tolist(),
        "taints": [taints[code] for code in codes],
        "topologies": {
            key: ([(*known.values, None)[code] for code in known.codes], set(known.values), known.everywhere)
            for key, known in topologies.items()
        },
        "images": columns.images.states,
        "at hand": columns.images.at_hand(("web:1", "web:latest")).tolist(),
        "usage": [each.tolist() for each in (usage.nonzero_cpu, usage.nonzero_memory, usage.pods)],
        "ports": {str(port): users.tolist() for port, users in snapshot.tally(HOST_PORTS).items() if users.any()},
        "movable": snapshot.tally(MovableTally()).tolist(),
        "volumes": snapshot.tally(VOLUME_USERS).uses,
        "pods": [sorted(pod.key for pod in snapshot.pods_on(name)) for name in names],
        "infos": [sorted(pod.key for pod in snapshot.node_info(row).pods) for row in range(len(names))],
        "all pods": {pod.key: (pod.node_name, pod.labels, pod.terminating) for pod in snapshot.placed_pods},
        "pending": sorted(pod.key for pod in snapshot.pending),
        "orphans": sorted((pod.key, pod.node_name) for pod in snapshot.orphans),
        "problems": sorted(map(str, snapshot.problems)),
        "objects": snapshot.objects,
    }


def answer(snapshot: Snapshot, pending: Json) -> Json:
    return json.loads(json.dumps(as_answer(SCHEDULER.schedule(snapshot, pod_from_manifest(pending)))))


class EventsOfACluster(RuleBasedStateMachine):
    """Creates, changes and deletes objects, one by one and in lists, with queries and simulations in between."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = ClusterCache()
        self.objects: dict[tuple[str, str], Json] = {}
        self.tree = GoTree()
        self.version = 100
        self.kept: list[tuple[Snapshot, Json]] = []

    # ---- events ----

    def send(self, kind_of_event: str, manifest: Json, *, as_bytes: bool) -> None:
        self.version += 1
        versioned = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self.version)}}
        event = {"type": kind_of_event, "object": versioned}
        self.cache.apply(json.dumps(event).encode() if as_bytes else event)

    def put(self, manifest: Json, *, as_bytes: bool) -> None:
        key = key_of(manifest)
        old = self.objects.get(key)
        self.note(manifest)
        self.send("ADDED" if old is None else "MODIFIED", manifest, as_bytes=as_bytes)

    def note(self, manifest: Json) -> None:
        key = key_of(manifest)
        old = self.objects.get(key)
        if manifest["kind"] == "Node":
            name = manifest["metadata"]["name"]
            if old is None:
                self.tree.add(name, zone_of(manifest))
            else:
                self.tree.update(name, zone_of(old), zone_of(manifest))
        self.objects[key] = manifest

    def forget(self, key: tuple[str, str]) -> Json:
        gone = self.objects.pop(key)
        if gone["kind"] == "Node":
            self.tree.remove(gone["metadata"]["name"], zone_of(gone))
        return gone

    @rule(drawn=st.data(), name=st.sampled_from(NODES), as_bytes=st.booleans())
    def node_comes_or_changes(self, drawn: st.DataObject, name: str, as_bytes: bool) -> None:
        self.put(drawn.draw(nodes(name)), as_bytes=as_bytes)

    @rule(drawn=st.data(), name=st.sampled_from(PODS), as_bytes=st.booleans())
    def pod_comes_or_changes(self, drawn: st.DataObject, name: str, as_bytes: bool) -> None:
        pod = drawn.draw(pods(name, drawn.draw(st.sampled_from(((), NODES)))))
        pod["metadata"]["namespace"] = "default"
        pod["status"]["phase"] = drawn.draw(st.sampled_from(("Pending", "Running", "Running", "Succeeded")))
        if drawn.draw(st.integers(0, 3)) == 0:
            pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        self.put(pod, as_bytes=as_bytes)

    @rule(drawn=st.data())
    def others_come(self, drawn: st.DataObject) -> None:
        for manifest in drawn.draw(clusters(1, 0)):
            if manifest["kind"] != "Node":
                self.put(manifest, as_bytes=False)

    @rule(drawn=st.data(), as_bytes=st.booleans())
    def something_goes(self, drawn: st.DataObject, as_bytes: bool) -> None:
        if self.objects:
            key = drawn.draw(st.sampled_from(sorted(self.objects)))
            self.send("DELETED", self.forget(key), as_bytes=as_bytes)

    @rule(name=st.sampled_from(PODS))
    def pod_cannot_be_read(self, name: str) -> None:
        broken = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]},
        }
        self.put(broken, as_bytes=True)

    @rule(drawn=st.data(), kind=st.sampled_from(("Node", "Pod", "Service", "Namespace")), as_bytes=st.booleans())
    def list_comes(self, drawn: st.DataObject, kind: str, as_bytes: bool) -> None:
        """Applies a list without some known objects, and perhaps with a new or changed Node. As in client-go, missing
        nodes are removed from the tree before new nodes are added. A node that was deleted and created again between
        two lists is treated as changed."""
        renewed = drawn.draw(nodes(drawn.draw(st.sampled_from(NODES)))) if kind == "Node" else None
        held = [key for key in self.objects if key[0] == kind]
        for key in held:
            if drawn.draw(st.integers(0, 3)) == 0 and (renewed is None or key != key_of(renewed)):
                self.forget(key)
        if renewed is not None:
            self.note(renewed)
        body = {"kind": f"{kind}List", "items": [each for key, each in self.objects.items() if key[0] == kind]}
        self.cache.apply(json.dumps(body).encode() if as_bytes else body)

    # ---- queries in between ----

    @rule(pending=pods("new"))
    def somebody_asks(self, pending: Json) -> None:
        """Queries a snapshot of the cache, so that the cache computes counts. Later events must update these counts."""
        if self.tree.list():
            answer(self.cache.snapshot(), pending)

    @rule(drawn=st.data(), coming=pods("simulated"))
    def somebody_simulates(self, drawn: st.DataObject, coming: Json) -> None:
        snapshot = self.cache.snapshot()
        if snapshot.node_names:
            name = drawn.draw(st.sampled_from(snapshot.node_names))
            answer(snapshot.with_pod_placed(pod_from_manifest(coming), name), coming)
            seen_in(snapshot.without_node(name))

    @rule()
    def somebody_keeps_a_snapshot(self) -> None:
        snapshot = self.cache.snapshot()
        if snapshot.node_names and len(self.kept) < 4:
            self.kept.append((snapshot, seen_in(snapshot)))

    # ---- the law ----

    @invariant()
    def the_order_is_that_of_the_tree(self) -> None:
        columns = self.cache.snapshot().columns
        assert [columns.names[row] for row in columns.tree_order] == self.tree.list()

    @invariant()
    def it_is_what_reading_anew_gives(self) -> None:
        snapshot = self.cache.snapshot()
        fresh = self.read_anew(snapshot.node_names)
        if snapshot.node_names:
            assert seen_in(snapshot) == seen_in(fresh)

    @rule(pending=pods("new"))
    def it_decides_as_one_read_anew(self, pending: Json) -> None:
        snapshot = self.cache.snapshot()
        if snapshot.node_names:
            fresh = self.read_anew(snapshot.node_names)
            order = [fresh.row(name) for name in self.tree.list()]
            fresh.columns.__dict__["tree_order"] = np.array(order, dtype=np.intp)
            assert answer(snapshot, pending) == answer(fresh, pending)

    def read_anew(self, names: tuple[str, ...]) -> Snapshot:
        row = {name: number for number, name in enumerate(names)}
        others = [each for key, each in sorted(self.objects.items()) if key[0] != "Node"]
        listed = [each for key, each in self.objects.items() if key[0] == "Node"]
        return load_objects([*sorted(listed, key=lambda each: row[each["metadata"]["name"]]), *others])

    def teardown(self) -> None:
        for snapshot, seen in self.kept:
            assert seen_in(snapshot) == seen


@pytest.mark.parametrize(
    ("changes_per_table", "fewest_nodes"), [(2048, 1000), (3, 1)], ids=["one table", "many tables and cached columns"]
)
def test_the_cache_equals_a_loaded_snapshot_after_any_events(
    changes_per_table: int, fewest_nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placements, "_CHANGES_PER_TABLE", changes_per_table)
    monkeypatch.setattr(by_usage, "_FEWEST_NODES", fewest_nodes)
    play(EventsOfACluster, examples=int(os.environ.get("MODEL_CACHE_EXAMPLES", "25")), steps=25)
