"""Tests NodeResourcesFit with its strategies, NodeResourcesBalancedAllocation, and ImageLocality. Comments mark the
numbers that come from kube-scheduler's own tests."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.testing.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.scheduler_core.plugins.verdicts import cluster, decided, filtered, plugin, scored

MI = 2**20


@pytest.mark.parametrize(
    ("pod", "verdict"),
    [
        (a_pod(), ""),
        (a_pod().requesting(cpu="1"), ""),
        (a_pod().requesting(cpu="1001m"), "Insufficient cpu"),
        (a_pod().requesting(cpu="4001m"), "!Insufficient cpu"),
        (a_pod().requesting(cpu="3", memory="9Gi"), "!Insufficient cpu, Insufficient memory"),
        (a_pod().requesting(ephemeral_storage="1"), "!Insufficient ephemeral-storage"),
        (a_pod().requesting(**{"example.com/gpu": "2"}), "Insufficient example.com/gpu"),
        (a_pod().requesting(**{"example.com/fpga": "1"}), "!Insufficient example.com/fpga"),
        (a_pod().requesting(**{"example.com/fpga": "0"}), ""),
        (a_pod().requesting(bananas="7"), ""),
    ],
    ids=[
        "a pod without requests",
        "exactly the free amount of cpu",
        "1m more cpu than is free",
        "1m more cpu than the node's allocatable amount",
        "too much of several resources",
        "ephemeral storage, which the node does not offer",
        "more devices than are free",
        "a device that the node does not offer",
        "a request for zero devices that the node does not offer",
        "an unknown resource name",
    ],
)
def test_node_resources_fit_refuses_nodes_without_room(pod: PodBuilder, verdict: str) -> None:
    taken = a_pod("taken").requesting(cpu="3", **{"example.com/gpu": "1"}).on("n")
    snapshot = cluster(a_node("n").offering_also({"example.com/gpu": "2"}), taken)
    assert filtered(plugin("NodeResourcesFit"), pod, snapshot) == {"n": verdict}


def test_terminating_pods_count_towards_the_pod_limit_of_a_node() -> None:
    snapshot = cluster(a_node("n").offering(pods="1"), a_pod("p").terminating().on("n"))
    assert filtered(plugin("NodeResourcesFit"), a_pod(), snapshot) == {"n": "Too many pods"}
    assert filtered(plugin("NodeResourcesFit"), a_pod().requesting(cpu="9"), snapshot) == {
        "n": "!Too many pods, Insufficient cpu"
    }


def test_a_node_without_allocatable_pods_accepts_no_pod() -> None:
    assert filtered(
        plugin("NodeResourcesFit"), a_pod(), cluster(a_node("n").with_field("status.allocatable", {"cpu": "4"}))
    ) == {"n": "Too many pods"}


@pytest.mark.parametrize(("version", "verdict"), [("1.33", "Insufficient cpu"), ("1.34", "!Insufficient cpu")])
def test_since_1_34_a_request_larger_than_the_node_is_unresolvable(version: str, verdict: str) -> None:
    assert filtered(plugin("NodeResourcesFit", version=version), a_pod().requesting(cpu="5"), cluster(a_node("n"))) == {
        "n": verdict
    }


def test_ignored_extended_resources_are_not_checked() -> None:
    pod = a_pod().requesting(**{"example.com/gpu": "1", "other.io/x": "1", "cpu": "9"})
    ignoring = plugin(
        "NodeResourcesFit", {"ignoredResources": ["example.com/gpu"], "ignoredResourceGroups": ["other.io"]}
    )
    assert filtered(ignoring, pod, cluster(a_node("n"))) == {"n": "!Insufficient cpu"}


def two_nodes() -> tuple[NodeBuilder, NodeBuilder]:
    return a_node("a").offering(cpu="4", memory="10000"), a_node("b").offering(cpu="6", memory="10000")


POD = a_pod().requesting(cpu="3", memory="5000")


def test_least_allocated_prefers_emptier_nodes() -> None:
    assert scored(plugin("NodeResourcesFit"), POD, cluster(*two_nodes())) == {"a": 37, "b": 50}  # upstream's numbers
    used = a_pod("used").requesting(cpu="2", memory="8Gi").on("n")
    assert scored(
        plugin("NodeResourcesFit"),
        a_pod().requesting(cpu="100m", memory="500Mi"),
        cluster(a_node("n").offering(memory="32Gi"), used),
    ) == {"n": 60}


def test_containers_without_requests_are_scored_with_default_requests() -> None:
    # 100m of 4 cores and 200Mi of 8Gi: (97 + 97) / 2, both cut down.
    assert scored(plugin("NodeResourcesFit"), a_pod(), cluster(a_node("n"))) == {"n": 97}


def test_an_overcommitted_resource_gets_a_score_of_zero() -> None:
    used = a_pod("used").requesting(cpu="5", memory="1Gi").on("n")
    assert scored(
        plugin("NodeResourcesFit"), a_pod().requesting(cpu="1", memory="1Gi"), cluster(a_node("n"), used)
    ) == {"n": 37}


def strategy(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "scoringStrategy": {
            "type": kind,
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
            **more,
        }
    }


def test_most_allocated_prefers_fuller_nodes() -> None:
    assert scored(plugin("NodeResourcesFit", strategy("MostAllocated")), POD, cluster(*two_nodes())) == {
        "a": 62,
        "b": 50,
    }


@pytest.mark.parametrize(
    ("shape", "cpu", "score"),
    [
        ([(0, 0), (100, 10)], "1", 25),
        ([(0, 10), (100, 0)], "1", 75),
        ([(0, 10), (100, 0)], "3999m", 1),
        ([(0, 3), (50, 0)], "1", 15),
        ([(20, 5), (40, 0)], "1", 38),
        ([(0, 0), (100, 10)], "9", 100),
        ([(0, 0), (40, 7), (100, 10)], "3", 87),
    ],
    ids=[
        "a rising shape",
        "a falling shape",
        "a score on a falling shape, truncated toward zero",
        "utilization beyond the last point of the shape",
        "utilization between two points of the shape",
        "a request above the node's capacity",
        "a shape of three points",
    ],
)
def test_requested_to_capacity_ratio_follows_its_shape(shape: list[tuple[int, int]], cpu: str, score: int) -> None:
    points = [{"utilization": u, "score": s} for u, s in shape]
    args = {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": "cpu", "weight": 1}],
            "requestedToCapacityRatio": {"shape": points},
        }
    }
    assert scored(plugin("NodeResourcesFit", args), a_pod().requesting(cpu=cpu, memory="1"), cluster(a_node("n"))) == {
        "n": score
    }


def test_requested_to_capacity_ratio_ignores_resources_that_score_zero() -> None:
    points = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    args = {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
            "requestedToCapacityRatio": {"shape": points},
        }
    }
    # cpu 25, memory 30: 27.5 rounds to 28. Without memory the mean is cpu's alone.
    assert scored(
        plugin("NodeResourcesFit", args),
        a_pod().requesting(cpu="1", memory="3000"),
        cluster(a_node("n").offering(memory="10000")),
    ) == {"n": 28}
    assert scored(
        plugin("NodeResourcesFit", args),
        a_pod().requesting(cpu="1", memory="0"),
        cluster(a_node("n").offering(memory="10000")),
    ) == {"n": 25}


def test_an_extended_resource_is_part_of_the_score_if_it_is_requested_and_offered() -> None:
    args = {
        "scoringStrategy": {
            "type": "MostAllocated",
            "resources": [{"name": "cpu", "weight": 1}, {"name": "example.com/gpu", "weight": 3}],
        }
    }
    snapshot = cluster(a_node("with").offering_also({"example.com/gpu": "4"}), a_node("without"))
    fit = plugin("NodeResourcesFit", args)
    assert scored(fit, a_pod().requesting(cpu="2"), snapshot) == {"with": 50, "without": 50}
    assert scored(fit, a_pod().requesting(cpu="2", **{"example.com/gpu": "4"}), snapshot) == {"with": 87, "without": 50}


# ---- balanced allocation ----


@pytest.mark.parametrize(("version", "scores"), [("1.35", {"a": 87, "b": 100}), ("1.36", {"a": 68, "b": 75})])
def test_since_1_36_the_balance_score_compares_the_balance_of_a_node_with_and_without_the_pod(
    version: str, scores: dict[str, int]
) -> None:
    """The balance of a node says how equal the used shares of the node's cpu and memory are. Until 1.35 the score is
    the balance with the pod. Since 1.36 the score is 75 if the pod does not change the balance."""
    assert (
        scored(plugin("NodeResourcesBalancedAllocation", version=version), POD, cluster(*two_nodes())) == scores
    )  # upstream's numbers


def test_the_balance_score_rises_if_the_pod_improves_the_balance() -> None:
    balanced = plugin("NodeResourcesBalancedAllocation")
    lopsided = a_pod("lopsided").requesting(cpu="3").on("n")
    node = a_node("n").offering(cpu="10", memory="20000")
    # Upstream's numbers. The balance is 82 with the pod and 85 without the pod: 50 + (50 + 82 − 85) / 2, rounded down.
    assert scored(balanced, POD, cluster(node, lopsided)) == {"n": 73}
    full = cluster(a_node("n").offering(cpu="1", memory="1000"), a_pod("cpu").requesting(cpu="1").on("n"))
    assert scored(balanced, a_pod().requesting(memory="1000"), full) == {"n": 100}
    empty = cluster(a_node("n").offering(cpu="1", memory="1000"))
    assert scored(balanced, a_pod().requesting(cpu="1"), empty) == {"n": 50}


@pytest.mark.parametrize(("version", "scores"), [("1.32", {"n": 100}), ("1.33", None), ("1.36", None)])
def test_balanced_allocation_skips_best_effort_pods_since_1_33(version: str, scores: dict[str, int] | None) -> None:
    assert scored(plugin("NodeResourcesBalancedAllocation", version=version), a_pod(), cluster(a_node("n"))) == scores


RETURNED = {"name": "c", "resources": {"requests": {"cpu": "4", "memory": "1000"}}}


def test_the_balance_score_counts_amounts_in_the_status_of_the_incoming_pod() -> None:
    asking = a_pod().with_container({"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1000"}}})
    snapshot = cluster(a_node("n").offering(cpu="4", memory="1000"))
    balanced = plugin("NodeResourcesBalancedAllocation", version="1.35")
    assert scored(balanced, asking, snapshot) == {"n": 62}
    assert scored(balanced, asking.with_field("status.containerStatuses", [RETURNED]), snapshot) == {"n": 100}


def test_what_is_kept_for_a_spec_is_not_taken_for_a_pod_whose_status_has_other_amounts() -> None:
    requests = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1000"}}}
    pods = [a_pod(name).with_container(requests) for name in ("a", "b", "c", "d")]
    pods[3] = pods[3].with_field("status.containerStatuses", [RETURNED])
    snapshot = cluster(*(a_node(name).offering(cpu="4", memory="1000") for name in ("n", "m")), *pods)
    scheduler = Scheduler(kube_version="1.35")
    tables = [scheduler.schedule(snapshot, snapshot.pod(f"default/{name}")).table for name in ("a", "b", "c", "d")]
    scores = [table.by_plugin["NodeResourcesBalancedAllocation"].tolist() for table in tables if table is not None]
    assert scores == [[62, 62], [62, 62], [62, 62], [100, 100]]


def test_the_balance_score_of_three_resources_uses_their_standard_deviation() -> None:
    args = {"resources": [{"name": name, "weight": 1} for name in ("cpu", "memory", "example.com/gpu")]}
    pod = a_pod().requesting(cpu="1", memory="500", **{"example.com/gpu": "4"})
    node = a_node("n").offering(cpu="4", memory="1000").offering_also({"example.com/gpu": "4"})
    # Fractions 1/4, 1/2, 1: mean 7/12, deviation sqrt(7/72) ≈ 0.3118, so 68 with the pod and 100 without: 50 +
    # (50 + 68 − 100) / 2.
    assert scored(plugin("NodeResourcesBalancedAllocation", args), pod, cluster(node)) == {"n": 59}


# ---- image locality ----


def test_the_image_locality_score_depends_on_the_size_and_spread_of_the_image() -> None:
    pod = a_pod().with_container({"name": "c", "image": "web"})
    snapshot = cluster(a_node("has").with_image("web:latest", size_bytes=250 * MI), a_node("lacks"))
    assert scored(plugin("ImageLocality"), pod, snapshot) == {"has": 10, "lacks": 0}
    everywhere = cluster(*[a_node(name).with_image("web:latest", size_bytes=500 * MI) for name in ("a", "b")])
    assert scored(plugin("ImageLocality"), pod, everywhere) == {"a": 48, "b": 48}


@pytest.mark.parametrize(
    ("image", "reported", "found"),
    [
        ("web", "web:latest", True),
        ("host:5000/web", "host:5000/web:latest", True),
        ("web@sha256:00", "web@sha256:00", True),
        ("web:1", "web:latest", False),
        ("a/web@sha256:00", "a/web@sha256:00", True),
    ],
)
def test_an_image_without_tag_gets_the_tag_latest(image: str, reported: str, found: bool) -> None:
    scores = scored(
        plugin("ImageLocality"),
        a_pod().with_container({"name": "c", "image": image}),
        cluster(a_node("n").with_image(reported, size_bytes=1000 * MI)),
    )
    assert scores == {"n": 100 if found else 0}


def test_the_first_node_with_an_image_determines_the_size_of_the_image() -> None:
    pod = a_pod().with_container({"name": "c", "image": "web:1"})
    snapshot = cluster(
        a_node("first").with_image("web:1", size_bytes=500 * MI),
        a_node("second").with_image("web:1", size_bytes=5 * MI),
    )
    assert scored(plugin("ImageLocality"), pod, snapshot) == {"first": 48, "second": 48}


@pytest.mark.parametrize(("version", "score"), [("1.35", 0), ("1.36", 100)])
def test_since_1_36_the_image_locality_score_includes_images_mounted_as_volumes(version: str, score: int) -> None:
    pod = a_pod().with_field("spec.volumes", [{"name": "v", "image": {"reference": "model:1"}}])
    assert scored(
        plugin("ImageLocality", version=version), pod, cluster(a_node("n").with_image("model:1", size_bytes=1000 * MI))
    ) == {"n": score}


def test_a_nodes_fit_is_unknown_if_a_device_class_offers_the_resource() -> None:
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpus"},
        "spec": {"extendedResourceName": "example.com/gpu"},
    }
    result = decided(a_pod().requesting(**{"example.com/gpu": "1"}), cluster(a_node("n"), objects=[device_class]))
    assert result.node is None
    assert "example.com/gpu" in result.unknown
