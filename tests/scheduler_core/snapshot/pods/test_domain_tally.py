"""Tests the number of selected pods in each domain of a topology key, such as the zone."""

from __future__ import annotations

import random

import pytest

from scheduler_core.model.labels import LabelSelector, Requirement
from scheduler_core.snapshot.pods.pod_classes import PodQuery
from scheduler_core.snapshot.pods.tallies import DomainTally, QueryTally
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.testing.builders import a_node, a_pod

ZONES = ("a", "b", "", None)
WEB = LabelSelector((Requirement("app", "In", ("web",)),))
LIVE = PodQuery(((frozenset({"default"}), WEB),), live_only=True)
ANY = PodQuery(((None, WEB),))


def a_cluster(size: int) -> Snapshot:
    nodes = [a_node(f"n{number}") for number in range(size)]
    zoned = zip(nodes, [ZONES[number % len(ZONES)] for number in range(size)], strict=True)
    return Snapshot.of([(node if zone is None else node.in_zone(zone)).build() for node, zone in zoned])


def counts(snapshot: Snapshot, query: PodQuery) -> list[int]:
    counted = snapshot.tally(DomainTally(query, "topology.kubernetes.io/zone"))
    topology = snapshot.columns.labels.topology("topology.kubernetes.io/zone")
    assert counted.tolist() == topology.sum_by_domain(snapshot.tally(QueryTally(query))).tolist()
    return list(counted.tolist())


def test_a_domain_counts_the_selected_pods_of_its_nodes() -> None:
    empty = a_cluster(8)
    pods = [a_pod("x").labelled(app="web").on("n0"), a_pod("y").labelled(app="web").on("n4")]
    others = [a_pod("z").labelled(app="db").on("n1"), a_pod("u").labelled(app="web").on("n3")]
    world = empty.with_pods_placed((each.build(), each.build().node_name) for each in (*pods, *others))
    assert counts(world, LIVE) == [2, 0, 0, 1]  # zones a, b and "", then the nodes without a zone
    assert counts(world.with_pod_terminating("default/x"), LIVE) == [1, 0, 0, 1]
    assert counts(world.with_pod_terminating("default/x"), ANY) == [2, 0, 0, 1]
    assert counts(world, LIVE) == [2, 0, 0, 1]


@pytest.mark.parametrize("seed", range(6))
def test_the_counts_of_domains_are_correct_after_changes_of_pods_and_nodes(seed: int) -> None:
    chance, world = random.Random(seed), a_cluster(9)
    for number in range(120):
        names = world.node_names
        match chance.randrange(6):
            case 0 if len(names) > 4:
                world = world.without_node(chance.choice(names))
            case 1:
                world = world.with_node_added(a_node(f"m{number}").in_zone(chance.choice("abc")).build())
            case 2 if world.placed_pods:
                world = world.with_pod_terminating(chance.choice(world.placed_pods).key)
            case 3 if world.placed_pods:
                world = world.without_pod(chance.choice(world.placed_pods).key)
            case _:
                pod = a_pod(f"p{number}").labelled(app=chance.choice(("web", "db"))).build()
                world = world.with_pod_placed(pod, chance.choice(names))
        for query in (LIVE, ANY):
            counts(world, query)
