from __future__ import annotations

import numpy as np
import pytest

from scheduler_core import Scheduler
from scheduler_core.model.labels import NodeSelector, NodeSelectorTerm, Requirement
from scheduler_core.model.taints import Toleration
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import NodeBuilder, a_node, a_pod, manifests


def columns(*nodes: NodeBuilder) -> Columns:
    return load_objects(manifests(list(nodes))).columns


def in_zones(*zones: str) -> list[NodeBuilder]:
    return [a_node(f"n{i}").in_zone(zone) if zone else a_node(f"n{i}") for i, zone in enumerate(zones)]


@pytest.mark.parametrize(
    ("zones", "order"),
    [
        ("aabb", [0, 2, 1, 3]),
        ("abab", [0, 1, 2, 3]),
        ("aaab", [0, 3, 1, 2]),
        ("baab", [0, 1, 3, 2]),
        (["", "", "a"], [0, 2, 1]),
    ],
)
def test_the_node_order_alternates_between_zones(zones: list[str], order: list[int]) -> None:
    assert columns(*in_zones(*zones)).tree_order.tolist() == order


def test_beta_zone_labels_take_precedence_over_current_zone_labels() -> None:
    beta = a_node("beta").in_zone("x").with_labels({"failure-domain.beta.kubernetes.io/zone": "a"})
    other_region = a_node("far").in_zone("a").with_labels({"topology.kubernetes.io/region": "r2"})
    assert columns(a_node("n0").in_zone("a"), beta, other_region, a_node("n3").in_zone("a")).tree_order.tolist() == [
        0,
        2,
        1,
        3,
    ]


def test_rows_are_sorted_by_the_node_order() -> None:
    assert columns(*in_zones(*"aabb")).in_tree_order(np.array([0, 1, 2])).tolist() == [0, 2, 1]


def test_the_heap_of_equal_nodes_is_built_in_the_schedulers_node_order() -> None:
    """The nodes n2 and n3 are equally good. In the scheduler's node order, n2 becomes the root of the heap. If the heap
    were built in list order, n3 would be the root."""
    nodes = [
        node.offering(cpu=cpu, memory="4Gi") for node, cpu in zip(in_zones(*"aabb"), ("2", "2", "8", "8"), strict=True)
    ]
    result = Scheduler().schedule(load_objects(manifests(nodes)), a_pod().requesting(cpu="1", memory="512Mi").build())
    assert (result.best, result.node) == (("n2", "n3"), "n2")
    turned = Scheduler().schedule(
        load_objects(manifests([nodes[0], nodes[3], nodes[1], nodes[2]])),
        a_pod().requesting(cpu="1", memory="512Mi").build(),
    )
    assert (turned.best, turned.node) == (("n2", "n3"), "n3")


def test_resource_columns_have_amounts_and_pod_counts() -> None:
    table = columns(a_node("a"), a_node("b").offering(cpu="500m", pods="7").offering_also({"example.com/gpu": "2"}))
    assert table.allocatable[table.resources["cpu"]].tolist() == [4000, 500]
    assert table.allocatable[table.resources["example.com/gpu"]].tolist() == [0, 2]
    assert table.allocatable[table.resources["ephemeral-storage"]].tolist() == [0, 0]
    assert table.allowed_pods.tolist() == [110, 7]


def test_columns_give_the_tolerated_nodes_and_the_declared_features() -> None:
    table = columns(
        a_node("a"),
        a_node("b").tainted("x"),
        a_node("c").tainted("x", effect="PreferNoSchedule").with_field("status.declaredFeatures", ["F"]),
    )
    assert table.tolerated(()).tolist() == [True, False, True]
    assert table.tolerated((Toleration("x", "Exists"),)).tolist() == [True, True, True]
    sets, places = table.feature_sets
    assert (sets, places.tolist()) == ((frozenset(), frozenset({"F"})), [0, 0, 1])


def test_label_columns_say_which_zone_each_node_has_and_which_nodes_a_selector_selects() -> None:
    labels = columns(a_node("a").in_zone("x"), a_node("b"), a_node("c").in_zone("y"), a_node("d").in_zone("x")).labels
    zone = labels.topology("topology.kubernetes.io/zone")
    assert (zone.values, zone.codes.tolist(), zone.present.tolist(), zone.everywhere) == (
        ("x", "y"),
        [0, 2, 1, 0],
        [True, False, True, True],
        False,
    )
    assert zone.sum_by_domain(np.array([1, 10, 100, 1000])).tolist() == [1001, 100, 10]
    in_x = NodeSelectorTerm(expressions=(Requirement("topology.kubernetes.io/zone", "In", ("x",)),))
    named = NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("c",)),))
    assert labels.selected((), NodeSelector((in_x, named))).tolist() == [True, False, True, True]
    assert labels.selected((("topology.kubernetes.io/zone", "y"),), NodeSelector((in_x, named))).tolist() == [
        False,
        False,
        True,
        False,
    ]
    assert labels.selected((), NodeSelector(())).tolist() == [False] * 4
