"""Tests snapshots whose nodes are added, changed and removed. Each snapshot equals a snapshot loaded from the same
objects, and the memory for a change does not grow with the cluster."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scheduler_core import Scheduler, Snapshot, node_from_manifest
from scheduler_core.sampling import Search
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.nodes import changing_nodes
from scheduler_core.snapshot.nodes.node_images import ImageState
from scheduler_core.snapshot.pods import placements
from scheduler_core.testing.builders import a_node, a_pod, manifests
from tests.scheduler_core.cache.test_cache_laws import GoTree, answer, key_of, seen_in, zone_of
from tests.scheduler_core.drawn_clusters import clusters, load_objects, nodes, pod_from_manifest, pods

Json = dict[str, Any]
NAMES = tuple(f"n{i}" for i in range(8))


Step = tuple[str, ...]  # a call of GoTree


class Branch(NamedTuple):
    """A snapshot, the objects that the snapshot should contain, and all changes of its nodes so far. The test builds
    kube-scheduler's tree of nodes from these changes."""

    snapshot: Snapshot
    objects: dict[tuple[str, str], Json]
    history: tuple[Step, ...]

    @property
    def nodes(self) -> dict[str, Json]:
        return {each["metadata"]["name"]: each for each in self.objects.values() if each["kind"] == "Node"}

    def changed(self, snapshot: Snapshot, manifest: Json, *steps: Step) -> Branch:
        return Branch(snapshot, {**self.objects, key_of(manifest): manifest}, (*self.history, *steps))

    def without_node(self, name: str) -> Branch:
        objects = {key: each for key, each in self.objects.items() if key != ("Node", f"/{name}")}
        gone = ("remove", name, zone_of(self.nodes[name]))
        return Branch(self.snapshot.without_node(name), objects, (*self.history, gone))

    def order(self) -> list[str]:
        tree = GoTree()
        for what, *about in self.history:
            getattr(tree, what)(*about)
        return tree.list()

    def is_equal_to_one_read_anew(self, pending: Json) -> None:
        row = {name: number for number, name in enumerate(self.snapshot.node_names)}
        others = [each for key, each in self.objects.items() if key[0] != "Node"]
        fresh = load_objects([*sorted(self.nodes.values(), key=lambda each: row[each["metadata"]["name"]]), *others])
        columns = self.snapshot.columns
        assert [columns.names[place] for place in columns.tree_order] == self.order()
        assert seen_in(self.snapshot) == seen_in(fresh)
        if row:
            fresh.columns.__dict__["tree_order"] = np.array([fresh.row(name) for name in self.order()], dtype=np.intp)
            assert answer(self.snapshot, pending) == answer(fresh, pending)


def went_on(branch: Branch, drawn: st.DataObject, number: int) -> Branch:
    """Derives a new snapshot by one random change: a node is added, replaced or removed, or a pod is placed."""
    held = sorted(branch.nodes)
    what = drawn.draw(st.sampled_from(("add", "place", "remove", "replace") if held else ("add",)))
    if what == "place":
        manifest = drawn.draw(pods(f"pod{number}", held))
        where = manifest["spec"]["nodeName"]
        pod = pod_from_manifest({**manifest, "spec": {**manifest["spec"], "nodeName": ""}})
        return branch.changed(branch.snapshot.with_pod_placed(pod, where), manifest)
    if what == "remove":
        return branch.without_node(drawn.draw(st.sampled_from(held)))
    free = [name for name in NAMES if name not in held]
    name = drawn.draw(st.sampled_from(free if what == "add" and free else held))
    manifest = drawn.draw(nodes(name))
    node = node_from_manifest(manifest)
    if name in held:
        step = ("update", name, zone_of(branch.nodes[name]), zone_of(manifest))
        return branch.changed(branch.snapshot.with_node_replaced(node), manifest, step)
    return branch.changed(branch.snapshot.with_node_added(node), manifest, ("add", name, zone_of(manifest)))


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking a tree of clusters takes minutes
)
@given(
    objects=clusters(),
    pending=pods("new"),
    steps=st.integers(2, 12),
    most_changes=st.sampled_from((0, 3, 64)),
    changes_per_table=st.sampled_from((2, 512)),
    drawn=st.data(),
)
def test_a_snapshot_with_changed_nodes_equals_a_loaded_snapshot(
    objects: list[Json], pending: Json, steps: int, most_changes: int, changes_per_table: int, drawn: st.DataObject
) -> None:
    """Derives snapshots from earlier snapshots, and queries any of them between the changes."""
    first = Branch(load_objects(objects), {key_of(each): each for each in objects}, ())
    begin = tuple(("add", name, zone_of(each)) for name, each in first.nodes.items())
    branches = [first._replace(history=begin)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changing_nodes, "_MOST_CHANGES", most_changes)
        patch.setattr(placements, "_CHANGES_PER_TABLE", changes_per_table)
        for number in range(steps):
            branches.append(went_on(drawn.draw(st.sampled_from(branches)), drawn, number))
            if drawn.draw(st.booleans()):
                asked = drawn.draw(st.sampled_from(branches)).snapshot
                seen_in(asked)
                if asked.node_names:
                    answer(asked, pending)
        for branch in branches:
            branch.is_equal_to_one_read_anew(pending)


def test_the_first_remaining_node_with_an_image_determines_the_size_of_the_image() -> None:
    sizes = {"n0": 10, "n1": 20, "n2": 30}
    made = [a_node(name).with_image("app:1", size_bytes=size) for name, size in sizes.items()]
    snapshot = load_objects(manifests(made))
    assert snapshot.columns.images.states["app:1"].size_bytes == 10
    changed = snapshot.with_nodes_replaced([a_node("n0").build(), a_node("n1").build()])
    assert changed.columns.images.states["app:1"] == ImageState(30, 1)
    assert changed.without_node("n2").columns.images.states == {}


def test_pods_of_a_removed_node_affect_no_other_pod() -> None:
    """Pods with anti-affinity are placed on node n2 after the first query. Once these pods and node n2 are removed, the
    same query must return its first result again."""
    snapshot = load_objects(manifests([a_node("n0").in_zone("a"), a_node("n1").in_zone("b")]))
    web = a_pod("web").with_labels({"app": "web"}).away_from("topology.kubernetes.io/zone", {"app": "web"})
    there = snapshot.with_pod_placed(web.build(), "n0")
    asks = a_pod("asks").with_labels({"app": "web"}).build()
    assert Scheduler().schedule(there, asks).node == "n1"
    more = there.with_node_added(a_node("n2").in_zone("c").build()).with_pods_placed(
        [(a_pod("other").with_labels({"app": "web"}).away_from("zone", {"app": "web"}).build(), "n2")]
    )
    other = a_pod("third").with_labels({"app": "web"}).away_from("topology.kubernetes.io/zone", {"app": "web"})
    gone = more.with_pods_placed([(other.build(), "n2")]).without_pods(["default/other", "default/third"])
    assert Scheduler().schedule(gone.without_node("n2"), asks).node == "n1"


# ---- what a change costs ----


def a_cluster(count: int) -> Snapshot:
    """Returns a cluster with three pods on each node. The cluster's cached columns and counts are filled, because one
    scheduling cycle has already run."""
    made = [a_node(f"n{i}").in_zone("abc"[i % 3]).with_image(f"app:{i % 5}", size_bytes=10) for i in range(count)]
    placed = [a_pod(f"p{i}-{j}").on(f"n{i}").with_labels({"app": f"a{j}"}) for i in range(count) for j in range(3)]
    snapshot = load_objects(manifests([*made, *placed]))
    Scheduler().schedule(snapshot, a_pod("asks").build())
    return snapshot


NEW_NODE = a_node("new").in_zone("a").with_image("app:1", size_bytes=10).build()
DERIVATIONS: dict[str, Callable[[Snapshot], Snapshot]] = {
    "with a node": lambda snapshot: snapshot.with_node_added(NEW_NODE),
    "without a node": lambda snapshot: snapshot.without_node("n7"),
    "with a node cordoned": lambda snapshot: snapshot.with_node_cordoned("n7"),
    "with pods": lambda snapshot: snapshot.with_pods_placed([(a_pod("comes").build(), "n7")]),
    "without a pod": lambda snapshot: snapshot.without_pod("default/p7-1"),
}


@pytest.mark.parametrize("derive", DERIVATIONS.values(), ids=DERIVATIONS)
def test_a_derived_snapshot_takes_no_more_memory_in_a_larger_cluster(derive: Callable[[Snapshot], Snapshot]) -> None:
    """The test detects a copy of any structure that has an entry for each node, pod or image."""

    def bytes_for(snapshot: Snapshot) -> int:
        derive(snapshot)  # the first derivation also makes what all derivations share, so it is not measured
        tracemalloc.start()
        try:
            begun, _ = tracemalloc.get_traced_memory()
            derive(snapshot)
            return tracemalloc.get_traced_memory()[1] - begun
        finally:
            tracemalloc.stop()

    assert bytes_for(a_cluster(600)) <= bytes_for(a_cluster(12)) + 1024


def test_node_columns_are_computed_once_for_many_changes_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    patched = Columns.patched
    monkeypatch.setattr(Columns, "patched", lambda self, *args: made.append(1) or patched(self, *args))
    snapshot = a_cluster(12)
    for number in range(300):
        snapshot = snapshot.with_node_added(a_node(f"more{number}").build()).without_node(f"more{number}")
    assert len(made) <= 600 // changing_nodes._MOST_CHANGES
    made.clear()
    assert snapshot.columns is snapshot.columns
    assert snapshot.with_pods_placed([(a_pod("comes").build(), "n7")]).columns is snapshot.columns
    assert len(made) <= 1


def test_a_snapshot_does_not_change_if_the_caller_changes_its_list_of_added_nodes() -> None:
    batch = [node_from_manifest(each) for each in manifests([a_node("b"), a_node("c")])]
    snapshot = load_objects(manifests([a_node("a")])).with_nodes_added(batch)
    batch.clear()
    pod = pod_from_manifest(*manifests([a_pod("p")]))
    assert Scheduler().schedule(snapshot, pod, search=Search(0)).node in {"a", "b", "c"}
