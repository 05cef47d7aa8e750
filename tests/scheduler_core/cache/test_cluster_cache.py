"""Tests how each event changes the cache, including late, repeated, misordered and unreadable events."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler_core import ClusterCache, Scheduler, Sync, pod_from_manifest
from scheduler_core.cache.events import UnusableEventError
from scheduler_core.snapshot.pods import placements
from scheduler_core.snapshot.snapshot import UnknownNodeError, UnknownPodError
from scheduler_core.testing.builders import a_node, a_pod

Json = dict[str, Any]


def node(name: str, **labels: str) -> Json:
    manifest: Json = a_node(name).manifest
    manifest["metadata"]["labels"].update(labels)
    return manifest


def pod(
    name: str = "web", on: str = "", *, version: str = "", phase: str = "Running", uid: str = "u", **meta: Any
) -> Json:
    manifest: Json = a_pod(name).manifest
    manifest["metadata"] |= {"uid": uid, "resourceVersion": version, **meta}
    manifest["spec"]["nodeName"] = on
    manifest["status"]["phase"] = phase if on else "Pending"
    return manifest


def cache_of(*manifests: Json) -> ClusterCache:
    cache = ClusterCache()
    for manifest in manifests:
        cache.apply({"type": "ADDED", "object": manifest})
    return cache


def where(cache: ClusterCache) -> dict[str, str]:
    """Maps each pod to the name of its node. The name is empty for a pending pod, and has a question mark if the node
    is unknown."""
    snapshot = cache.snapshot()
    placed = {pod.name: pod.node_name for pod in snapshot.placed_pods}
    waiting = {pod.name: "" for pod in snapshot.pending}
    return {**placed, **waiting, **{pod.name: f"{pod.node_name}?" for pod in snapshot.orphans}}


def test_the_cache_follows_a_pod_from_creation_to_deletion() -> None:
    cache = cache_of(node("n1"), pod())
    assert where(cache) == {"web": ""}
    cache.apply({"type": "MODIFIED", "object": pod(on="n1")})
    assert where(cache) == {"web": "n1"}
    cache.apply({"type": "MODIFIED", "object": pod(on="n1", phase="Succeeded")})
    assert where(cache) == {}
    assert not cache.apply({"type": "DELETED", "object": pod(on="n1", phase="Succeeded")})


def test_a_pod_bound_to_an_unknown_node_is_placed_once_the_node_is_added() -> None:
    cache = cache_of(pod(on="n1"))
    assert where(cache) == {"web": "n1?"}
    cache.apply({"type": "ADDED", "object": node("n1")})
    assert where(cache) == {"web": "n1"}
    cache.apply({"type": "DELETED", "object": node("n1")})
    assert where(cache) == {"web": "n1?"}
    cache.apply({"type": "ADDED", "object": node("n1")})
    assert [each.name for each in cache.snapshot().pods_on("n1")] == ["web"]


@pytest.mark.parametrize(
    ("held", "late", "is_ignored"),
    [
        ("100", "99", True),
        ("99", "100", False),
        ("100", "100", False),
        ("9", "10", False),  # numbers, not texts
        ("100", "", False),
        ("", "1", False),
        ("100", "abc", False),
        ("abc", "1", False),
        ("100", "-1", False),
        ("100", "099", False),
        ("100", "٩٩", False),  # digits, but not those of an API server
        ("100", "1" * 40, False),
    ],
)
def test_an_event_is_ignored_only_if_its_resource_version_is_provably_older(
    held: str, late: str, is_ignored: bool
) -> None:
    cache = cache_of(node("n1"), node("n2"), pod(on="n1", version=held))
    cache.apply({"type": "MODIFIED", "object": pod(on="n2", version=late)})
    assert where(cache) == {"web": "n1" if is_ignored else "n2"}


def test_an_event_older_than_the_deletion_does_not_restore_the_object() -> None:
    cache = cache_of(node("n1"), pod(on="n1", version="5"))
    cache.apply({"type": "DELETED", "object": pod(on="n1", version="9")})
    assert not cache.apply({"type": "MODIFIED", "object": pod(on="n1", version="8")})
    assert where(cache) == {}
    cache.apply({"type": "ADDED", "object": pod(on="n1", version="10", uid="next")})
    assert where(cache) == {"web": "n1"}


@pytest.mark.parametrize(("uid", "stays"), [("next", False), ("before", True), ("", False)])
def test_a_late_deletion_does_not_remove_a_new_object_of_the_same_name(uid: str, stays: bool) -> None:
    cache = cache_of(node("n1"), pod(on="n1", uid="next"))
    cache.apply({"type": "DELETED", "object": pod(on="n1", uid=uid)})
    assert where(cache) == ({"web": "n1"} if stays else {})


def test_a_list_replaces_all_objects_even_if_its_versions_are_lower() -> None:
    cache = cache_of(node("n1"), pod("a", on="n1", version="500"), pod("b", on="n1", version="600"))
    cache.apply({"kind": "PodList", "apiVersion": "v1", "items": [pod("a", on="", version="3"), pod("c", version="4")]})
    assert where(cache) == {"a": "", "c": ""}
    assert cache.snapshot().node_names == ("n1",)
    cache.apply({"type": "MODIFIED", "object": pod("a", on="n1", version="5")})
    assert where(cache) == {"a": "n1", "c": ""}


def test_a_paged_list_deletes_missing_objects_only_after_its_last_page() -> None:
    cache = cache_of(node("n1"), pod("a", on="n1"), pod("b", on="n1"))
    pages = [json.dumps({"items": [each]}).encode() for each in (pod("b", on="n1"), pod("c", on="n1"))]

    def cut_off() -> Iterator[bytes]:
        yield pages[0]
        yield b'{"items": [{'

    with pytest.raises(UnusableEventError, match="a list page of kind Pod cannot be read"):
        cache.apply(Sync("Pod", cut_off()))
    assert where(cache) == {"a": "n1", "b": "n1"}
    cache.apply(Sync("Pod", iter(pages)))
    assert where(cache) == {"b": "n1", "c": "n1"}


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"nothing",
        b"[]",
        b"{}",
        b"\xff",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": null}',
        b'{"type": "MODIFIED", "object": {"kind": 7}}',
        b'{"type": "ERROR", "object": {"kind": "Status", "code": 410}}',
        {"type": "ADDED", "object": None},
        {"type": None, "object": {}},
        {"kind": "PodList", "items": [None]},
        {"kind": "PodList", "items": 7},
    ],
    ids=repr,
)
def test_an_invalid_event_is_refused_and_changes_nothing(event: Any) -> None:
    cache = cache_of(node("n1"), pod(on="n1"))
    before = cache.snapshot()
    with pytest.raises(UnusableEventError):
        cache.apply(event)
    assert cache.snapshot() is before


@pytest.mark.parametrize(
    "event",
    [
        {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}},
        {"type": "ADDED", "object": {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e"}}},
        {"type": "MODIFIED", "object": pod(on="n1", annotations={"seen": "today"})},
        {
            "type": "ADDED",
            "object": {"kind": "Service", "apiVersion": "serving.knative.dev/v1", "metadata": {"name": "s"}},
        },
    ],
    ids=[
        "a bookmark",
        "an object of a kind that scheduling does not read",
        "a change of a field that scheduling does not read",
        "a Service of another API group",
    ],
)
def test_an_event_that_changes_nothing_keeps_the_same_snapshot(event: Json) -> None:
    cache = cache_of(node("n1"), pod(on="n1"))
    before = cache.snapshot()
    assert not cache.apply(event)
    assert cache.snapshot() is before


def test_the_cache_leaves_out_an_object_while_it_is_unreadable() -> None:
    cache = cache_of(node("n1"), pod(on="n1"))
    broken = pod(on="n1")
    broken["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "much"}}
    assert cache.apply({"type": "MODIFIED", "object": broken})
    assert where(cache) == {}
    assert [each.key for each in cache.snapshot().problems] == ["default/web"]
    assert cache.apply({"type": "MODIFIED", "object": pod(on="n1")})
    assert (where(cache), cache.snapshot().problems) == ({"web": "n1"}, ())


def test_an_assumed_pod_stays_on_its_node_until_it_is_bound_or_forgotten() -> None:
    cache = cache_of(node("n1"), node("n2"), pod())
    cache.assume("default/web", "n1")
    assert where(cache) == {"web": "n1"}
    cache.apply({"type": "MODIFIED", "object": pod(labels={"app": "web"})})  # not yet bound
    assert where(cache) == {"web": "n1"}
    cache.forget("default/web")
    assert where(cache) == {"web": ""}
    cache.assume("default/web", "n1")
    cache.apply({"type": "MODIFIED", "object": pod(on="n2")})
    assert where(cache) == {"web": "n2"}
    with pytest.raises(UnknownPodError):
        cache.forget("default/web")
    with pytest.raises(UnknownPodError):
        cache.assume("default/web", "n1")


def test_assuming_a_pod_on_an_unknown_node_is_an_error() -> None:
    cache = cache_of(node("n1"), pod())
    with pytest.raises(UnknownNodeError):
        cache.assume("default/web", "n9")
    assert where(cache) == {"web": ""}


def test_an_assumed_pod_that_is_deleted_is_removed() -> None:
    cache = cache_of(node("n1"), pod())
    cache.assume("default/web", "n1")
    cache.apply({"type": "DELETED", "object": pod()})
    assert where(cache) == {}
    cache.apply({"type": "ADDED", "object": pod(uid="next")})
    assert where(cache) == {"web": ""}


def test_deleting_a_node_removes_its_assumed_pod() -> None:
    cache = cache_of(node("n1"), pod())
    cache.assume("default/web", "n1")
    cache.apply({"type": "DELETED", "object": node("n1")})
    assert where(cache) == {"web": "n1?"}
    cache.forget("default/web")
    assert where(cache) == {"web": ""}


ZONE = "topology.kubernetes.io/zone"


def order(cache: ClusterCache) -> list[str]:
    columns = cache.snapshot().columns
    return [columns.names[row] for row in columns.tree_order]


def test_a_zone_comes_last_if_it_was_empty_before_a_node_was_added() -> None:
    cache = cache_of(node("a1", **{ZONE: "a"}), node("b1", **{ZONE: "b"}), node("a2", **{ZONE: "a"}))
    assert order(cache) == ["a1", "b1", "a2"]
    cache.apply({"type": "DELETED", "object": node("a1")})
    assert order(cache) == ["a2", "b1"]  # the zone stays where it was while one of its nodes stays
    cache.apply({"type": "ADDED", "object": node("a1", **{ZONE: "a"})})
    assert order(cache) == ["a2", "b1", "a1"]
    for gone in ("a1", "a2"):
        cache.apply({"type": "DELETED", "object": node(gone)})
    cache.apply({"type": "ADDED", "object": node("a1", **{ZONE: "a"})})
    assert order(cache) == ["b1", "a1"]


def test_a_new_node_list_removes_absent_nodes_before_it_adds_new_nodes() -> None:
    cache = cache_of(node("a1", **{ZONE: "a"}), node("b1", **{ZONE: "b"}))
    cache.apply({"kind": "NodeList", "items": [node("a2", **{ZONE: "a"}), node("b1", **{ZONE: "b"})]})
    assert order(cache) == ["b1", "a2"]


def test_the_cache_forgets_labels_and_specs_of_deleted_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods with a thousand different templates are created and deleted. Only a few of their labels, specs, owners,
    classes and affinity groups stay in memory."""
    monkeypatch.setattr(placements, "_CHANGES_PER_TABLE", 16)
    cache = cache_of(node("n1"), pod("stays", on="n1"))
    empty = cache.sizes()
    for number in range(1000):
        manifest = pod(f"p{number}", on="n1", labels={"number": str(number)})
        manifest["metadata"]["ownerReferences"] = [{"kind": "Job", "name": f"j{number}", "controller": True}]
        manifest["spec"]["containers"][0]["image"] = f"app:{number}"
        term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"number": str(number)}}}
        manifest["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        cache.apply({"type": "ADDED", "object": manifest})
        Scheduler().schedule(
            cache.snapshot(), pod_from_manifest({**manifest, "spec": {**manifest["spec"], "nodeName": ""}})
        )
        cache.apply({"type": "DELETED", "object": manifest})
        del manifest
    gc.collect()
    sizes = dict(cache.sizes())
    # Besides the kinds of present pods, the cache has the kinds of up to 16 recent changes. It also keeps up to 64
    # unused kinds, because their removal would lose cached answers.
    kinds = sizes.pop("kinds of pods")
    assert kinds <= 64 + 16 + 2
    assert sizes.pop("groups of affinity") <= 64 + 16 + 2
    assert sizes.pop("shared parts of pods") <= kinds + 3 * 16  # a kind keeps its labels
    assert sizes == {name: empty[name] for name in sizes}


def test_the_cache_of_a_large_cluster_keeps_data_of_only_a_few_deleted_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod of this test has labels of its own. The number of deleted pods whose labels stay in memory must not grow
    with the number of pods in the cluster."""
    monkeypatch.setattr(placements, "_CHANGES_PER_TABLE", 16)
    stay = [pod(f"stays{number}", on="n1", labels={"number": f"s{number}"}) for number in range(200)]
    cache = cache_of(node("n1"), *stay)
    for number in range(400):
        manifest = pod(f"p{number}", on="n1", labels={"number": str(number)})
        cache.apply({"type": "ADDED", "object": manifest})
        cache.apply({"type": "DELETED", "object": manifest})
    last_table = max(16, 200 // 16)  # changes that have not become a table yet
    assert cache.sizes()["kinds of pods"] <= 200 + 64 + last_table + 1


def test_the_cache_forgets_taints_that_no_node_has() -> None:
    cache = cache_of(node("n1"), node("n2"))
    for number in range(100):
        tainted = node("n1")
        tainted["spec"] = {"taints": [{"key": "at", "value": str(number), "effect": "NoSchedule"}]}
        cache.apply({"type": "MODIFIED", "object": tainted})
        sets, codes = cache.snapshot().columns.taint_sets
        assert [sets[code] for code in codes] == [each.taints for each in cache.snapshot().nodes]
    assert len(sets) == 2


def test_later_events_do_not_change_a_snapshot() -> None:
    cache = cache_of(node("n1"), pod(on="n1"))
    before = cache.snapshot()
    cache.apply({"type": "DELETED", "object": pod(on="n1")})
    cache.apply({"type": "DELETED", "object": node("n1")})
    assert [each.name for each in before.pods_on("n1")] == ["web"]
    assert cache.snapshot().node_names == ()
