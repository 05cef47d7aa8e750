from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from scheduler_core.snapshot.loading import load_objects, load_pages
from scheduler_core.testing.builders import a_budget, a_node, a_pod, manifests

CLUSTER = manifests(
    a_node("n1").in_zone("a"),
    a_node("n2"),
    a_pod("placed").on("n1"),
    a_pod("waiting"),
    a_pod("lost").on("gone"),
    a_budget(),
)


def page(kind: str, *items: dict[str, Any], api_version: str = "v1", kind_first: bool = True) -> bytes:
    bare = [
        {key: value for key, value in item.items() if key not in {"kind", "apiVersion"}} for item in items
    ]  # as an API server lists them
    head = {"kind": f"{kind}List", "apiVersion": api_version, "metadata": {}}
    return json.dumps({**head, "items": bare} if kind_first else {"items": bare, **head}).encode()


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [o for o in CLUSTER if o["kind"] == kind]


@pytest.mark.parametrize("kind_first", [True, False])
def test_objects_and_raw_pages_give_the_same_cluster(kind_first: bool) -> None:
    pages = [
        page("Pod", *of_kind("Pod"), kind_first=kind_first),
        page("Node", *of_kind("Node"), kind_first=kind_first),
        page("PodDisruptionBudget", *of_kind("PodDisruptionBudget"), api_version="policy/v1", kind_first=kind_first),
    ]
    one, other = load_objects(CLUSTER), load_pages(pages)
    for snapshot in (one, other):
        assert snapshot.node_names == ("n1", "n2")
        assert [pod.key for pod in snapshot.pods_on("n1")] == ["default/placed"]
        assert [pod.key for pod in snapshot.pending] == ["default/waiting"]
        assert [pod.key for pod in snapshot.orphans] == ["default/lost"]
        assert [budget.key for budget in snapshot.objects.budgets] == ["default/budget"]
        assert snapshot.problems == ()
    assert one.nodes == other.nodes


def test_finished_pods_are_left_out() -> None:
    done = [
        a_pod(phase.lower()).on("n1").with_field("status.phase", phase)
        for phase in ("Succeeded", "Failed", "Running", "Unknown")
    ]
    snapshot = load_objects(manifests(a_node("n1"), done))
    assert [pod.name for pod in snapshot.pods_on("n1")] == ["running", "unknown"]


BAD_POD = a_pod("bad", "shop").requesting(cpu="much").on("n1").manifest
BAD_TYPE = {**a_pod("odd").manifest, "spec": {"containers": [{"name": "c", "image": 7}]}}
SAID = [
    (
        "Pod shop/bad: spec.containers[0].resources.requests.cpu: 'much' is not a quantity: expected digits with "
        "a suffix such as m, k, M, G, Ki, Mi, Gi or an exponent such as e3"
    ),
    "Pod default/odd: spec.containers[0].image: Expected `str`, got `int`",
]


def test_an_unreadable_object_is_reported_and_other_objects_are_loaded() -> None:
    snapshot = load_objects([*CLUSTER, BAD_POD, BAD_TYPE])
    assert [str(problem).replace("[...]", "[0]") for problem in snapshot.problems] == SAID
    assert [pod.key for pod in snapshot.pods_on("n1")] == ["default/placed"]


def test_an_unreadable_object_in_a_page_does_not_affect_other_objects() -> None:
    snapshot = load_pages([page("Node", *of_kind("Node")), page("Pod", BAD_TYPE, *of_kind("Pod"), BAD_POD)])
    assert sorted(str(problem).replace("[...]", "[0]") for problem in snapshot.problems) == sorted(SAID)
    assert [pod.key for pod in snapshot.pods_on("n1")] == ["default/placed"]


def test_loading_leaves_out_only_the_unreadable_node() -> None:
    snapshot = load_objects(manifests(a_node("n1"), a_node("n2").offering(pods="many"), a_pod("p").on("n2")))
    assert snapshot.node_names == ("n1",)
    assert [pod.key for pod in snapshot.orphans] == ["default/p"]
    assert [(p.kind, p.key, p.field) for p in snapshot.problems] == [("Node", "n2", "status.allocatable.pods")]


def test_kinds_that_scheduling_does_not_read_are_ignored() -> None:
    others = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        {
            "apiVersion": "example.com/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "not-the-one"},
            "spec": {"selector": 7},
        },
    ]
    snapshot = load_objects([*CLUSTER, *others])
    assert (snapshot.problems, snapshot.objects.owners) == ((), {})


def test_lists_among_the_objects_are_expanded() -> None:
    listed = {"apiVersion": "v1", "kind": "NodeList", "items": [a_node("n1").manifest]}
    mixed = {"apiVersion": "v1", "kind": "List", "items": [a_node("n2").manifest, a_pod("p").on("n2").manifest]}
    assert load_objects([listed, mixed]).node_names == ("n1", "n2")


def test_an_object_without_a_kind_is_reported() -> None:
    assert [str(p) for p in load_objects([{"metadata": {"name": "x"}}]).problems] == [
        "object x: kind: an object needs a kind and an apiVersion"
    ]


@pytest.mark.parametrize("body", [b"{}", b'{"items": []}', b"not json"])
def test_a_page_that_is_not_a_list_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"kind|JSON"):
        load_pages([body])


def test_the_later_of_two_objects_with_the_same_name_is_loaded() -> None:
    snapshot = load_objects(
        manifests(a_node("n1"), a_node("n1").in_zone("b"), a_pod("p").on("n1"), a_pod("p").on("n1").with_priority(5))
    )
    assert snapshot.node("n1").labels["topology.kubernetes.io/zone"] == "b"
    assert [pod.priority for pod in snapshot.pods_on("n1")] == [5]


def test_loading_restores_the_state_of_the_garbage_collector() -> None:
    assert gc.isenabled()
    load_objects(CLUSTER)
    assert gc.isenabled()
    gc.disable()
    try:
        load_objects(CLUSTER)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("metadata", [{}, {"name": ""}, None])
def test_an_object_without_a_name_is_reported(metadata: Any) -> None:
    nameless = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}
    for snapshot in (
        load_objects([*CLUSTER, nameless]),
        load_pages([page("Node", *of_kind("Node")), page("Pod", nameless, *of_kind("Pod"))]),
    ):
        assert [(p.kind, p.key, p.field.partition(".")[0]) for p in snapshot.problems] == [
            ("Pod", "without a name", "metadata")
        ]
        assert [pod.key for pod in snapshot.pods_on("n1")] == ["default/placed"]
