"""Tests how `careen shadow` measures the rate at which the scheduler binds pods that no drain displaced. The rate is
measured over ten minutes."""

from __future__ import annotations

import pytest

from careen.shadow.other_pods import OtherPods
from scheduler_core import Snapshot
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod, manifests

WEB, OTHER = ("ReplicaSet", "web"), ("ReplicaSet", "other")


def cluster(*, is_cordoned: bool = True) -> Snapshot:
    world = load_objects(manifests(a_node("n1"), a_node("n2"), a_pod("web-1").owned_by(*WEB).on("n1")))
    return world.with_node_cordoned("n1") if is_cordoned else world


def a_new_pod(*owner: str) -> Pod:
    built = a_pod("new_pod").owned_by(*owner) if owner else a_pod("new_pod")
    return load_objects(manifests(built)).pending[0]


def after_a_drain(world: Snapshot, times: int = 1, at: float = 100.0) -> OtherPods:
    (web,) = world.pods_on("n1")
    others = OtherPods(0.0)
    for _ in range(times):
        others.leaves(web, world, at)
    return others


@pytest.mark.parametrize(
    ("owner", "is_cordoned", "counted"), [(WEB, True, 0), (WEB, False, 1), (OTHER, True, 1), ((), True, 1)]
)
def test_the_replacement_of_a_drained_pod_does_not_count_towards_the_rate_of_bindings(
    owner: tuple[str, ...], is_cordoned: bool, counted: int
) -> None:
    others = after_a_drain(cluster(is_cordoned=is_cordoned))
    others.bound(a_new_pod(*owner), 300.0)
    assert others.per_second(300.0) == pytest.approx(counted / 300)


@pytest.mark.parametrize(("seconds", "counted"), [(1.0, 0), (400.0, 0), (601.0, 1)])
def test_a_replacement_may_come_ten_minutes_after_the_drained_pod_was_deleted(seconds: float, counted: int) -> None:
    """A StatefulSet replaces a pod as soon as the pod is gone, but a Job may need minutes to replace a pod."""
    others = after_a_drain(cluster())
    others.bound(a_new_pod(*WEB), 100.0 + seconds)
    assert others.per_second(100.0 + seconds) * 600.0 == pytest.approx(counted, abs=0.2)


def test_only_one_binding_counts_as_the_replacement_of_a_drained_pod() -> None:
    others = after_a_drain(cluster(), times=2)
    for _ in range(5):
        others.bound(a_new_pod(*WEB), 300.0)
    assert others.per_second(300.0) == pytest.approx(3 / 300)


def test_a_binding_is_matched_with_the_pod_that_was_drained_first() -> None:
    world = cluster()
    others = after_a_drain(world, at=0.0)
    others.leaves(world.pods_on("n1")[0], world, 500.0)
    others.bound(a_new_pod(*WEB), 550.0)
    others.bound(a_new_pod(*WEB), 650.0)
    assert others.per_second(650.0) == 0.0


def test_deleted_pods_without_a_replacement_are_forgotten_after_ten_minutes() -> None:
    world = cluster()
    others = OtherPods(0.0)
    for number in range(100):
        others.leaves(world.pods_on("n1")[0], world, 100.0 * number)
    assert [len(left) for left in others._left.values()] == [7]


def test_an_owner_whose_drained_pods_get_no_replacement_is_forgotten() -> None:
    others = after_a_drain(cluster(), times=3)
    later = load_objects(manifests(a_node("n1"), a_pod("other-1").owned_by(*OTHER).on("n1"))).with_node_cordoned("n1")
    others.leaves(later.pods_on("n1")[0], later, 1000.0)
    assert [owner.name for _, owner in others._left if owner] == ["other"]


def test_the_rate_of_bindings_is_measured_over_the_last_ten_minutes() -> None:
    others = OtherPods(0.0)
    assert others.per_second(0.0) == 0.0
    new_pod = a_new_pod()
    for second in range(1, 601):
        others.bound(new_pod, float(second))
    assert others.per_second(600.0) == pytest.approx(1.0)
    assert others.per_second(900.0) == pytest.approx(0.5, abs=0.01)
    assert others.per_second(2000.0) == 0.0


def test_one_binding_in_the_first_second_gives_a_rate_of_one_binding_per_minute() -> None:
    others = OtherPods(100.0)
    others.bound(a_new_pod(), 100.0)
    assert others.per_second(100.0) == pytest.approx(1 / 60)


def test_the_rate_of_very_many_bindings_is_measured_over_the_last_6000_bindings() -> None:
    """The scheduler binds 20,000 pods in 20 seconds. The last 6000 bindings take 6 seconds, so the rate is 1000
    bindings per second."""
    others = OtherPods(0.0)
    new_pod = a_new_pod()
    for number in range(20_000):
        others.bound(new_pod, number / 1000)
    assert others.per_second(20.0) == pytest.approx(1000.0, rel=0.01)
