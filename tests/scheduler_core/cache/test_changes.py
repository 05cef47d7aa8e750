"""Tests what the cache says about a change, and the states that a scheduler's loop meets between two events."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core import ClusterCache, Sync
from scheduler_core.cache.changes import Change
from scheduler_core.model.pod import WrittenRefusal
from scheduler_core.snapshot.snapshot import UnknownPodError

Json = dict[str, Any]


def node(name: str, **labels: str) -> Json:
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "4", "pods": "110"}},
    }


def pod(name: str = "db-0", *, uid: str = "old", on: str = "", version: int = 7, **status: Any) -> Json:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": str(version)},
        "spec": {"containers": [], "nodeName": on},
        "status": status,
    }


def cache_of(*manifests: Json) -> ClusterCache:
    cache = ClusterCache()
    for manifest in manifests:
        cache.apply({"type": "ADDED", "object": manifest})
    return cache


def event(manifest: Json, kind: str = "MODIFIED") -> Json:
    return {"type": kind, "object": manifest}


def pending(cache: ClusterCache) -> list[str]:
    return [each.uid for each in cache.snapshot().pending]


OTHERS = [
    node("n1"),
    {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "shop"}},
    {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
    },
    {"kind": "CSINode", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "n1"}, "spec": {"drivers": []}},
    pod(),
]


@pytest.mark.parametrize("manifest", OTHERS, ids=lambda manifest: manifest["kind"])
def test_a_change_of_any_kind_has_the_object_before_and_after_it(manifest: Json) -> None:
    cache = ClusterCache()
    (came,) = cache.apply(event(manifest, "ADDED"))
    assert (came.kind, came.old, came.new) == (manifest["kind"], None, cache.find(came.kind, came.key))
    assert came.new is not None
    assert cache.apply(event(manifest)) == ()
    (gone,) = cache.apply(event(manifest, "DELETED"))
    assert gone == Change(kind=came.kind, key=came.key, old=came.new, new=None)


def test_a_list_tells_what_came_what_changed_and_what_went() -> None:
    cache = cache_of(pod("a"), pod("b"), pod("c"))
    items = [pod("b", version=9), pod("c", on="n1", version=9), pod("d", version=9)]
    changes = cache.apply({"kind": "PodList", "apiVersion": "v1", "items": items})
    assert {each.key: (each.old is not None, each.new is not None) for each in changes} == {
        "shop/a": (True, False),
        "shop/c": (True, True),
        "shop/d": (False, True),
    }


def test_a_pod_that_is_created_again_while_its_earlier_one_is_assumed_is_pending() -> None:
    cache = cache_of(node("n1"), pod(uid="old"))
    cache.assume("shop/db-0", "n1")
    (change,) = cache.apply(Sync("Pod", iter([{"items": [pod(uid="new", version=9)]}])))
    assert (pending(cache), cache.snapshot().pods_on("n1")) == (["new"], ())
    assert (change.old.uid, change.new.uid, change.assumed) == ("old", "new", "n1")


def test_forgetting_an_earlier_pod_does_not_touch_the_pod_that_has_its_name_now() -> None:
    cache = cache_of(node("n1"), pod(uid="new"))
    cache.assume("shop/db-0", "n1", uid="new")
    with pytest.raises(UnknownPodError, match="with uid old"):
        cache.forget("shop/db-0", uid="old")
    with pytest.raises(UnknownPodError, match="with uid old"):
        cache.assume("shop/db-0", "n1", uid="old")
    assert cache.assumed_node("shop/db-0", "new") == "n1"


def test_a_change_of_an_assumed_pod_tells_of_the_pod_as_it_is_written() -> None:
    cache = cache_of(node("n1"), pod(nominatedNodeName="n1"))
    cache.assume("shop/db-0", "n1")
    (waits,) = cache.apply(event(pod(version=8, nominatedNodeName="n1", phase="Unknown")))
    assert (waits.new.node_name, waits.new.nominated_node_name, waits.assumed) == ("", "n1", "n1")
    cache.forget("shop/db-0")
    assert cache.snapshot().pending == (waits.new,)


def test_the_binding_of_an_assumed_pod_is_a_change_that_moves_nothing() -> None:
    cache = cache_of(node("n1"), pod())
    cache.assume("shop/db-0", "n1")
    (bound,) = cache.apply(event(pod(on="n1", version=8)))
    assert (bound.old.node_name, bound.new.node_name, bound.assumed) == ("", "n1", "n1")
    assert cache.assumed_node("shop/db-0") == ""
    assert [each.key for each in cache.snapshot().pods_on("n1")] == ["shop/db-0"]


def test_a_pending_pod_knows_with_which_words_it_was_refused() -> None:
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    cache = cache_of(pod(conditions=[refused]))
    assert cache.find("Pod", "shop/db-0").refusal == WrittenRefusal("Unschedulable", "0/3 nodes")
    cache.apply(event(pod(on="n1", version=8, conditions=[refused])))
    assert cache.find("Pod", "shop/db-0").refusal is None


def test_other_work_goes_on_between_the_slices_of_a_long_list() -> None:
    cache = cache_of(node("n1"), *(pod(f"p{i}", uid=f"u{i}") for i in range(600)))
    slices = cache.relist(
        Sync("Pod", iter([{"items": [pod(f"p{i}", uid=f"u{i}", version=9) for i in range(300, 900)]}]))
    )
    assert len(next(slices)) == 0
    cache.assume("shop/p599", "n1")
    cache.assume("shop/p5", "n1")
    sizes = [len(changes) for changes in slices]
    assert max(sizes) == 250
    assert len(cache.snapshot().pending) == 599
    assert cache.assumed_node("shop/p599") == "n1"
    assert cache.assumed_node("shop/p5") == ""


def test_a_snapshot_has_the_pending_pods_of_its_time_even_if_they_are_read_later() -> None:
    cache = cache_of(node("n1"), pod("a", uid="a"), pod("b", uid="b"))
    first = cache.snapshot()
    cache.assume("shop/a", "n1")
    second = cache.snapshot()
    cache.apply(event(pod("c", uid="c"), "ADDED"))
    cache.apply(event(pod("b", uid="b"), "DELETED"))
    cache.forget("shop/a")
    third = cache.snapshot()
    assert [[each.uid for each in one.pending] for one in (first, second, third)] == [["a", "b"], ["b"], ["c", "a"]]


def test_changes_of_pending_pods_are_forgotten_when_no_snapshot_needs_them() -> None:
    cache = cache_of(node("n1"), pod("a", uid="a"))
    kept = cache.snapshot()
    for turn in range(1000):
        cache.apply(event(pod("b", uid=f"b{turn}", version=10 + turn), "ADDED"))
    assert len(cache._placed.waiting._log) < 300
    assert [each.uid for each in kept.pending] == ["a"]
    del kept
    cache.snapshot()
    cache._snapshot = None
    cache.apply(event(pod("b", uid="last", version=5000)))
    assert cache._placed.waiting._log == []
