"""Tests the clusters of `make bench-rollout`. Seed 0 gives the cluster of the published figures. With every seed, one
node can be down and all pods still fit.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bench.rollout.placement import places
from bench.rollout.sample import DAEMONS_MILLICPU, GREATEST_LOAD, LEAST_LOAD, NODE_MILLICPU, NODES, nodes, sample
from tests.cluster.harness.workloads import zone_spread

seeds = st.integers(min_value=1, max_value=10_000)


def test_with_seed_0_all_hosts_need_a_reboot_at_once() -> None:
    reference = sample(0)
    assert {name: (size.replicas, size.millicpu) for name, size in reference.sizes.items()} == {
        "web": (24, 500),
        "api": (18, 750),
        "cache": (9, 1000),
        "db": (3, 2000),
        "worker": (24, 500),
        "batch": (15, 400),
        "misc": (6, 250),
    }
    assert (reference.pods, reference.load, set(reference.asks.values())) == (99, 0.65, {0.0})


@given(seeds)
def test_the_same_seed_gives_the_same_cluster(seed: int) -> None:
    assert sample(seed) == sample(seed)
    assert sample(seed).workloads() == sample(seed).workloads()


@given(seeds)
def test_the_load_of_a_drawn_cluster_stays_within_its_bounds(seed: int) -> None:
    assert LEAST_LOAD <= sample(seed).load <= GREATEST_LOAD


@given(seeds)
def test_pods_with_anti_affinity_fit_while_one_node_is_down(seed: int) -> None:
    sizes = sample(seed).sizes
    assert max(sizes["cache"].replicas, sizes["db"].replicas) < NODES
    assert all(size.millicpu + DAEMONS_MILLICPU <= NODE_MILLICPU and size.replicas > 0 for size in sizes.values())


@given(seeds)
def test_each_host_needs_one_reboot_and_the_times_differ(seed: int) -> None:
    asks = sample(seed).asks
    assert set(asks) == {name for name, _ in nodes()}
    assert sorted(asks.values()) == [0.5 * place for place in range(NODES)]


# The seed determines an order of the 12 hosts. If only 5 hosts need a reboot, they are the first 5 hosts in this order.
@given(st.integers(0, 10_000), st.integers(1, NODES))
def test_if_only_some_hosts_need_a_reboot_these_are_the_first_hosts(seed: int, asking: int) -> None:
    everybody, some = sample(seed), sample(seed, asking)
    assert some.sizes == everybody.sizes
    assert list(some.asks.items()) == list(everybody.asks.items())[:asking]


def test_clusters_of_different_seeds_differ_in_every_varied_property() -> None:
    drawn = [sample(seed) for seed in range(1, 6)]
    for what in (
        {str(each.sizes) for each in drawn},
        {each.pods for each in drawn},
        {str(sorted(each.asks.items())) for each in drawn},
    ):
        assert len(what) == 5


# -- where the pods lie


def a_node(name: str, zone: str) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    meta = {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "web"}}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": {"containers": containers, **spec}}


CLUSTER = [a_node(name, zone) for name, zone in nodes()]


def names(placed: list[tuple[dict[str, Any], str]]) -> list[str]:
    return [node for _, node in placed]


def test_the_placement_seed_determines_on_which_nodes_the_pods_start() -> None:
    waiting = [a_pod(f"web-{number}") for number in range(12)]
    once, again, other = (names(places(CLUSTER, waiting, random.Random(seed))) for seed in (1, 1, 2))
    assert once == again
    assert once != other


def test_the_placement_of_each_pod_affects_the_next_pod() -> None:
    waiting = [a_pod(f"web-{number}", **zone_spread("web")) for number in range(24)]
    placed = Counter(names(places(CLUSTER, waiting, random.Random(1))))
    assert set(placed.values()) == {2}
