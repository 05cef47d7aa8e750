"""Tests laws of snapshots: a derived snapshot equals a snapshot loaded from the changed objects, and no snapshot ever
changes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_core import Scheduler, Snapshot
from scheduler_core.framework.scoring import by_usage
from scheduler_core.judge.answer import as_answer
from scheduler_core.model.requests import RequestRules
from scheduler_core.simulation.movable import MovableTally
from scheduler_core.snapshot.pods import placements
from scheduler_core.snapshot.pods.tallies import HOST_PORTS, UsageTally
from tests.scheduler_core.drawn_clusters import clusters, load_objects, pod_from_manifest, pods

pytestmark = pytest.mark.usefixtures("fewest_nodes")

Json = dict[str, Any]
SCHEDULER = Scheduler()
USAGE = UsageTally(RequestRules())


@pytest.fixture(scope="module", params=[1000, 1], ids=["computed columns", "cached columns"])
def fewest_nodes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs each test twice: first without cached columns, then with cached columns. The scheduler keeps columns of
    scores and refusals for the next snapshot only if the cluster has at least `_FEWEST_NODES` nodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_usage, "_FEWEST_NODES", request.param)
        yield


def answer(snapshot: Snapshot, pending: Json) -> Json:
    """Returns all results of the scheduler as JSON. Equal clusters must have equal results."""
    return json.loads(json.dumps(as_answer(SCHEDULER.schedule(snapshot, pod_from_manifest(pending)))))


def columns_of(snapshot: Snapshot) -> list[Any]:
    """Returns every column that depends on pods, and the pods on each node, in a form that can be compared."""
    usage = snapshot.tally(USAGE).usage
    ports = {port: users.tolist() for port, users in snapshot.tally(HOST_PORTS).items() if users.any()}
    on_nodes = [sorted(pod.key for pod in snapshot.pods_on(name)) for name in snapshot.node_names]
    return [
        usage.requested.tolist(),
        usage.nonzero_cpu.tolist(),
        usage.nonzero_memory.tolist(),
        usage.pods.tolist(),
        ports,
        on_nodes,
    ]


@settings(max_examples=60, deadline=None)
@given(objects=clusters(), coming=pods("coming"), pending=pods("new"), drawn=st.data())
def test_placing_then_removing_a_pod_restores_every_column(
    objects: list[Json], coming: Json, pending: Json, drawn: st.DataObject
) -> None:
    snapshot = load_objects(objects)
    before, said = columns_of(snapshot), answer(snapshot, pending)
    node = drawn.draw(st.sampled_from(snapshot.node_names))
    pod = pod_from_manifest(coming)
    placed = snapshot.with_pod_placed(pod, node)
    during = columns_of(placed)
    answer(placed, pending)
    restored = placed.without_pod(pod.key)
    assert columns_of(restored) == before
    assert answer(restored, pending) == said
    assert during != before
    assert columns_of(placed) == during
    assert columns_of(snapshot) == before


@settings(max_examples=60, deadline=None)
@given(objects=clusters(), arrivals=st.lists(pods("x"), min_size=1, max_size=4), pending=pods("new"), drawn=st.data())
def test_a_derived_snapshot_equals_a_snapshot_loaded_from_the_changed_objects(
    objects: list[Json], arrivals: list[Json], pending: Json, drawn: st.DataObject
) -> None:
    snapshot = load_objects(objects)
    answer(snapshot, pending)  # counts are remembered from here on and have to be carried along
    changed = list(objects)
    for number, manifest in enumerate(arrivals):
        node = drawn.draw(st.sampled_from(snapshot.node_names))
        meta = {**manifest["metadata"], "name": f"arrival{number}"}
        placed = {**manifest, "metadata": meta, "spec": {**manifest["spec"], "nodeName": node}}
        snapshot = snapshot.with_pod_placed(pod_from_manifest({**manifest, "metadata": meta}), node)
        changed.append(placed)
        if drawn.draw(st.booleans()):
            answer(snapshot, pending)
        running = [o for o in changed if o["kind"] == "Pod"]
        leaving = drawn.draw(st.sampled_from([None, *running]))
        if leaving is not None:
            snapshot = snapshot.without_pod(f"{leaving['metadata']['namespace']}/{leaving['metadata']['name']}")
            changed.remove(leaving)
    fresh = load_objects(changed)
    assert answer(snapshot, pending) == answer(fresh, pending)
    assert columns_of(snapshot) == columns_of(fresh)


def test_a_derived_snapshot_equals_a_loaded_snapshot_after_many_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placements, "_CHANGES_PER_TABLE", 3)
    d = random.Random(7)
    objects: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i}", "labels": {"kubernetes.io/hostname": f"n{i}"}},
            "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "99"}},
        }
        for i in range(4)
    ]
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}]
            }
        },
    }
    snapshot = load_objects(objects)
    running: dict[str, str] = {}
    pending = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "new", "namespace": "default", "labels": {"app": "a"}},
        "spec": spec,
    }
    for number in range(20):
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "default", "labels": {"app": d.choice("ab")}},
            "spec": spec,
        }
        node = f"n{d.randrange(4)}"
        snapshot = snapshot.with_pod_placed(pod_from_manifest(manifest), node)
        objects.append({**manifest, "spec": {**spec, "nodeName": node}})
        running[f"default/p{number}"] = node
        if number % 3 == 2:
            gone = d.choice(sorted(running))
            snapshot = snapshot.without_pod(gone)
            del running[gone]
            objects = [o for o in objects if o["metadata"]["name"] != gone.removeprefix("default/")]
        fresh = load_objects(objects)
        assert answer(snapshot, pending) == answer(fresh, pending)
        assert columns_of(snapshot) == columns_of(fresh)
        assert {pod.key: pod.node_name for pod in snapshot.placed_pods} == running


def test_two_snapshots_derived_from_one_snapshot_do_not_affect_each_other() -> None:
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"pods": "9"}}}
        for name in "ab"
    ]
    one = pod_from_manifest({"metadata": {"name": "one"}, "spec": {"containers": []}})
    two = pod_from_manifest({"metadata": {"name": "two"}, "spec": {"containers": []}})
    base = load_objects(nodes)
    left, right = base.with_pod_placed(one, "a"), base.with_pod_placed(two, "b")
    assert [columns_of(s)[3] for s in (base, left, right)] == [[0, 0], [1, 0], [0, 1]]
    assert [columns_of(s)[3] for s in (left.with_pod_placed(two, "a"), left)] == [[2, 0], [1, 0]]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # a cluster and five pods take long to draw beside other work
@given(
    objects=clusters(),
    pending=pods("new"),
    arrivals=st.lists(pods("x"), min_size=2, max_size=5),
    changes_per_table=st.sampled_from((2, 512)),
    drawn=st.data(),
)
def test_a_snapshot_derived_from_an_older_snapshot_ignores_newer_snapshots(
    objects: list[Json], pending: Json, arrivals: list[Json], changes_per_table: int, drawn: st.DataObject
) -> None:
    """Derives each snapshot from a random earlier snapshot, and then queries a random snapshot. For example, a trial
    drain that is dropped must not affect the next drain."""
    tree: list[tuple[Snapshot, list[Json]]] = [(load_objects(objects), objects)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placements, "_CHANGES_PER_TABLE", changes_per_table)
        for number, manifest in enumerate(arrivals):
            snapshot, changed = drawn.draw(st.sampled_from(tree))
            tree.append(
                _gone_on(
                    snapshot,
                    changed,
                    {**manifest, "metadata": {**manifest["metadata"], "name": f"arrival{number}"}},
                    drawn,
                )
            )
            asked, _ = drawn.draw(st.sampled_from(tree))
            answer(asked, pending)
            _infos_of(asked)
    for snapshot, changed in tree:
        fresh = load_objects(changed)
        assert answer(snapshot, pending) == answer(fresh, pending)
        assert columns_of(snapshot) == columns_of(fresh)
        assert _infos_of(snapshot) == _infos_of(fresh)
        assert {pod.key: snapshot.pod(pod.key).node_name for pod in fresh.placed_pods} == {
            pod.key: pod.node_name for pod in snapshot.placed_pods
        }
        assert snapshot.tally(MovableTally()).tolist() == fresh.tally(MovableTally()).tolist()


def _gone_on(
    snapshot: Snapshot, objects: list[Json], manifest: Json, drawn: st.DataObject
) -> tuple[Snapshot, list[Json]]:
    node = drawn.draw(st.sampled_from(snapshot.node_names))
    running = [o for o in objects if o["kind"] == "Pod"]
    what = drawn.draw(st.sampled_from(("place", "remove", "cordon") if running else ("place", "cordon")))
    if what == "place":
        return snapshot.with_pod_placed(pod_from_manifest(manifest), node), [
            *objects,
            {**manifest, "spec": {**manifest["spec"], "nodeName": node}},
        ]
    if what == "remove":
        leaving = drawn.draw(st.sampled_from(running))
        return snapshot.without_pod(f"{leaving['metadata']['namespace']}/{leaving['metadata']['name']}"), [
            o for o in objects if o is not leaving
        ]
    cordoned = [
        {**o, "spec": {**o["spec"], "unschedulable": True}}
        if o["kind"] == "Node" and o["metadata"]["name"] == node
        else o
        for o in objects
    ]
    return snapshot.with_node_cordoned(node, with_taint=False), cordoned


def _infos_of(snapshot: Snapshot) -> list[Any]:
    infos = [snapshot.node_info(row) for row in range(len(snapshot.nodes))]
    return [
        (
            info.node,
            sorted(pod.key for pod in info.pods),
            {name: amount for name, amount in info.requested.items() if amount},
            info.used_ports,
        )
        for info in infos
    ]


@settings(max_examples=60, deadline=None)
@given(objects=clusters(), pending=pods("new"), seed=st.integers(0, 10**6))
def test_the_order_of_nodes_affects_no_verdict_and_no_score(objects: list[Json], pending: Json, seed: int) -> None:
    for each in objects:
        if (
            each["kind"] == "Node"
        ):  # an image has the size that the first node reports: there the order matters, as in the scheduler
            each["status"]["images"] = [{**image, "sizeBytes": 3 * 10**8} for image in each["status"]["images"]]
    first = answer(load_objects(objects), pending)
    shuffled = list(objects)
    random.Random(seed).shuffle(shuffled)
    other = answer(load_objects(shuffled), pending)
    for said in (first, other):
        said.pop("preemption", None)  # which of several equal nodes is sacrificed on is the order's to say
    assert first == other


@settings(max_examples=60, deadline=None)
@given(objects=clusters(), pending=pods("new"))
def test_a_scheduling_cycle_does_not_change_the_snapshot_and_is_deterministic(
    objects: list[Json], pending: Json
) -> None:
    snapshot = load_objects(objects)
    before = columns_of(snapshot)
    held = [snapshot.columns.allocatable, snapshot.columns.allowed_pods, snapshot.tally(USAGE).usage.requested]
    copies = [array.copy() for array in held]
    first = answer(snapshot, pending)
    assert answer(snapshot, pending) == first
    assert columns_of(snapshot) == before
    assert all(np.array_equal(array, copied) for array, copied in zip(held, copies, strict=True))


# Schedules the pod `pending` on two snapshots. In one snapshot, a node was cordoned after the snapshot was loaded. The
# other snapshot was loaded from objects in which this node was already cordoned. Both snapshots must give the same
# result. An uncordon after loading must also give the same result as loading the uncordoned node. The cordon must not
# change the result of the snapshot from which the cordoned snapshot was made.
@settings(max_examples=40, deadline=None)
@given(objects=clusters(), pending=pods("new"), drawn=st.data())
def test_a_cordon_equals_loading_a_cordoned_node(objects: list[Json], pending: Json, drawn: st.DataObject) -> None:
    snapshot = load_objects(objects)
    before = answer(snapshot, pending)
    name = drawn.draw(st.sampled_from(snapshot.node_names))
    taint = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
    read = [
        {**o, "spec": {**o["spec"], "unschedulable": True, "taints": [*o["spec"]["taints"], taint]}}
        if o["kind"] == "Node" and o["metadata"]["name"] == name
        else o
        for o in objects
    ]
    cordoned = snapshot.with_node_cordoned(name)
    assert answer(cordoned, pending) == answer(load_objects(read), pending)
    assert answer(cordoned.with_node_uncordoned(name), pending) == answer(
        load_objects([*objects, *_uncordoned(objects, name)]), pending
    )
    assert answer(snapshot, pending) == before


def _uncordoned(objects: list[Json], name: str) -> list[Json]:
    """Returns a list with one object: the node of this name without its cordon. A caller appends this list to
    `objects`. The later of two objects with the same name is used, so this node replaces the cordoned node."""
    return [
        {**o, "spec": {**o["spec"], "unschedulable": False}}
        for o in objects
        if o["kind"] == "Node" and o["metadata"]["name"] == name
    ]


def test_a_cordon_does_not_change_the_columns_of_the_original_snapshot() -> None:
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"pods": "9"}},
        }
        for name in "ab"
    ]
    snapshot = load_objects(nodes)
    before = (snapshot.columns.taint_sets[1].tolist(), snapshot.columns.unschedulable.tolist())
    cordoned = snapshot.with_node_cordoned("b")
    assert (cordoned.columns.taint_sets[1].tolist(), cordoned.columns.unschedulable.tolist()) == ([0, 1], [False, True])
    assert (
        (snapshot.columns.taint_sets[1].tolist(), snapshot.columns.unschedulable.tolist())
        == before
        == ([0, 0], [False, False])
    )
