"""Tests how more nodes help the pods that a drain leaves without room."""

from __future__ import annotations

import pytest

from scheduler_core import Scheduler, Snapshot, like_node, load_objects
from scheduler_core.snapshot.snapshot import UnknownNodeError
from scheduler_core.testing.builders import a_node, a_pod, manifests
from scheduler_core.what_if import after_drain as module
from scheduler_core.what_if.after_drain import after_drain, answer, suggestion

SCHEDULER = Scheduler()


def a_cluster(cpu: str = "1500m", pods: int = 3, waiting: int = 0) -> Snapshot:
    """Returns a cluster with two nodes of 4 cpu. Node n1 runs `pods` pods, node n2 is full, and `waiting` more pods
    are pending."""
    replicas = [a_pod(f"web-{i}").requesting(cpu=cpu).owned_by("ReplicaSet", "web").on("n1") for i in range(pods)]
    full = a_pod("full").requesting(cpu="4").owned_by("ReplicaSet", "full").on("n2")
    waits = [a_pod(f"waits-{i}").requesting(cpu="4").owned_by("ReplicaSet", "waits") for i in range(waiting)]
    return load_objects(manifests(a_node("n1"), a_node("n2"), full, replicas, waits))


@pytest.mark.parametrize(("count", "placed"), [(1, 2), (2, 3), (5, 3)])
def test_the_answer_gives_the_number_of_pods_that_fit_on_the_added_nodes(count: int, placed: int) -> None:
    after = after_drain(a_cluster(), ["n1"], SCHEDULER)
    told = answer(after, SCHEDULER, like_node(after.world, "n1"), count)
    assert (told.pods, len(told.placed), told.needed, told.best_placed) == (3, placed, 2, 3)
    assert set(told.placed) | set(told.refused) == {f"default/web-{i}" for i in range(3)}
    assert len(told.refused) == 3 - placed
    assert all("Insufficient cpu" in why for why in told.refused.values())


def test_added_nodes_also_take_pods_that_were_already_pending() -> None:
    after = after_drain(a_cluster(waiting=1), ["n1"], SCHEDULER)
    told = answer(after, SCHEDULER, like_node(after.world, "n2"), 1)
    assert told.pods == 4
    assert "default/waits-0" in {*told.placed, *told.refused}
    assert told.needed == 3


def test_no_number_of_nodes_helps_if_each_node_is_too_small() -> None:
    after = after_drain(a_cluster(cpu="4", pods=1), ["n1"], SCHEDULER)
    small = load_objects(manifests(a_node("small").offering(cpu="1")))
    template = like_node(small, "small")
    told = answer(after, SCHEDULER, template, 3)
    assert (told.needed, told.best_count, told.placed) == (None, 0, {})
    assert told.refused == {"default/web-0": "Insufficient cpu"}


@pytest.mark.parametrize(
    ("pods", "told"),
    [
        (0, ""),
        (1, "one more node like n1 would take the pod that finds no room"),
        (2, "one more node like n1 would take all 2 pods that find no room"),
        (4, "2 more nodes like n1 would take all 4 pods that find no room"),
        (8, ""),
    ],
)
def test_the_suggestion_contains_at_most_three_more_nodes(pods: int, told: str) -> None:
    after = after_drain(a_cluster(pods=pods), ["n1"], SCHEDULER)
    assert suggestion(after, SCHEDULER) == told


def test_a_suggestion_that_would_take_long_to_find_is_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    after = after_drain(a_cluster(), ["n1"], SCHEDULER)
    monkeypatch.setattr(module, "_MOST_PODS_TIMES_NODES", 5)
    assert suggestion(after, SCHEDULER) == ""


def test_draining_an_unknown_node_is_an_error() -> None:
    with pytest.raises(UnknownNodeError):
        after_drain(a_cluster(), ["n9"], SCHEDULER)
