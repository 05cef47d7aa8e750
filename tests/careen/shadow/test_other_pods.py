"""Other pods are those that no drain displaced, counted over ten minutes."""

from __future__ import annotations

import pytest

from careen.shadow.other_pods import OtherPods
from scheduler_core import Snapshot
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod, manifests

WEB, OTHER = ("ReplicaSet", "web"), ("ReplicaSet", "other")


def cluster(*, is_cordoned: bool = True, is_ending: bool = True) -> Snapshot:
    world = load_objects(manifests(a_node("n1"), a_node("n2"), a_pod("web-1").owned_by(*WEB).on("n1")))
    world = world.with_pod_terminating("default/web-1") if is_ending else world
    return world.with_node_cordoned("n1") if is_cordoned else world


def a_comer(*owner: str) -> Pod:
    built = a_pod("comer").owned_by(*owner) if owner else a_pod("comer")
    return load_objects(manifests(built)).pending[0]


@pytest.mark.parametrize(
    ("owner", "before", "counted"),
    [
        (WEB, cluster(), 0),
        (WEB, cluster(is_cordoned=False), 1),
        (WEB, cluster(is_ending=False), 1),
        (OTHER, cluster(), 1),
        ((), cluster(), 1),
    ],
)
def test_the_replacement_of_a_drained_pod_does_not_count_towards_the_rate(
    owner: tuple[str, ...], before: Snapshot, counted: int
) -> None:
    others = OtherPods(0.0)
    others.bound(a_comer(*owner), before, 300.0)
    assert others.per_second(300.0) == pytest.approx(counted / 300)


def test_a_binding_counts_towards_the_rate_for_ten_minutes() -> None:
    others = OtherPods(0.0)
    assert others.per_second(0.0) == 0.0
    comer, world = a_comer(), cluster()
    for second in range(1, 601):
        others.bound(comer, world, float(second))
    assert others.per_second(600.0) == pytest.approx(1.0)
    assert others.per_second(900.0) == pytest.approx(0.5, abs=0.01)
    assert others.per_second(2000.0) == 0.0


def test_a_single_early_binding_does_not_give_a_high_rate() -> None:
    others = OtherPods(100.0)
    others.bound(a_comer(), cluster(), 100.0)
    assert others.per_second(100.0) == pytest.approx(1 / 60)


def test_more_bindings_than_are_kept_are_counted_over_a_shorter_time() -> None:
    others = OtherPods(0.0)
    comer, world = a_comer(), cluster(is_cordoned=False)
    for number in range(20_000):
        others.bound(comer, world, number / 1000)
    assert others.per_second(20.0) == pytest.approx(1000.0, rel=0.01)
