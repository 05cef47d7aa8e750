"""Tests which smallest changes would give a pending pod a node, and that they do."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core import Scheduler, Snapshot, load_objects
from scheduler_core.what_if.smallest_change import NewNodes, new_nodes_that_help, smallest_changes

Json = dict[str, Any]
SCHEDULER = Scheduler()
BATCH = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}


def node(name: str, cpu: str = "4", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "3"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    return {"kind": "Node", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": {"allocatable": amounts}}


def pod(name: str, cpu: str, on: str = "", memory: str = "1Gi", **spec: Any) -> Json:
    requests = {"cpu": cpu, "memory": memory}
    container: Json = {"name": "c", "image": "i", "resources": {"requests": requests}}
    container |= {"ports": [{"containerPort": port, "hostPort": port} for port in spec.pop("ports", ())]}
    meta = {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "web"}}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": meta,
        "spec": {"containers": [container], "nodeName": on, **spec},
    }


def orders(*items: Json) -> list[tuple[str, ...]]:
    snapshot = load_objects(items)
    return [change.orders for change in smallest_changes(SCHEDULER, snapshot, snapshot.pod("shop/new"))]


def test_the_node_with_the_least_to_free_is_named_with_the_exact_amounts() -> None:
    items = (node("n1"), node("n2"), pod("a", "3", "n1"), pod("b", "1500m", "n2", "7500Mi"))
    assert orders(*items, pod("new", "3", memory="2Gi")) == [("free 500m cpu and 1356Mi memory on n2",)]
    assert _fits(*items, pod("new", "2500m", memory="692Mi"))
    assert not _fits(*items, pod("new", "2501m", memory="692Mi"))
    assert not _fits(*items, pod("new", "2500m", memory="693Mi"))


def test_a_node_that_is_too_small_even_when_empty_is_not_named() -> None:
    assert orders(node("n1"), node("n2", cpu="8"), pod("a", "7", "n2"), pod("new", "6")) == [("free 5000m cpu on n2",)]
    assert orders(node("n1"), pod("new", "6")) == []


def test_a_node_that_allows_no_pods_is_not_named() -> None:
    closed = node("n1")
    closed["status"]["allocatable"]["pods"] = "0"
    assert orders(closed, pod("new", "1")) == []


def test_a_node_without_the_label_of_a_spread_needs_it_and_no_larger_skew() -> None:
    spread = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        for key in ("zone", "rack")
    ]
    new = pod("new", "1", topologySpreadConstraints=spread)
    elsewhere = (node("n2", cpu="1", labels={"zone": "b", "rack": "b"}), pod("a", "1", "n2"))
    found = orders(node("n1", labels={"rack": "a"}), *elsewhere, new)
    assert found[0] == ("label n1 with zone, a value of its own",)
    assert _fits(node("n1", labels={"rack": "a", "zone": "a"}), *elsewhere, new)


def test_a_node_that_is_ill_and_tainted_needs_both() -> None:
    ill = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    both = ("tolerate dedicated=batch:NoSchedule of n1 and mend n1, which is not-ready",)
    assert orders(node("n1", taints=[BATCH, ill]), pod("new", "1")) == [both]
    cordoned = orders(node("n1", taints=[BATCH, cordon], unschedulable=True), pod("new", "1"))
    assert [sorted(each) for each in cordoned] == [["tolerate dedicated=batch:NoSchedule of n1", "uncordon n1"]]


def test_pods_that_preemption_nominated_keep_their_room() -> None:
    urgent = pod("urgent", "2", priority=10)
    snapshot = load_objects((node("n1"), pod("a", "3", "n1"), urgent, pod("new", "1")))
    nominated = {"n1": (snapshot.pod("shop/urgent"),)}
    found = smallest_changes(SCHEDULER, snapshot, snapshot.pod("shop/new"), nominated=nominated)
    assert [each.orders for each in found] == [("free 2000m cpu on n1",)]


def test_each_kind_of_refusal_has_its_order_and_fewer_orders_come_first() -> None:
    assert orders(
        node("n1", taints=[BATCH]),
        node("n2", unschedulable=True),
        node("n3", taints=[BATCH]),
        pod("a", "3", "n3"),
        pod("new", "3"),
    ) == [
        ("tolerate dedicated=batch:NoSchedule of n1",),
        ("uncordon n2",),
        ("tolerate dedicated=batch:NoSchedule of n3", "free 2000m cpu on n3"),
    ]


@pytest.mark.parametrize(
    ("items", "order"),
    [
        ((node("n1"), pod("new", "1", nodeSelector={"disk": "ssd"})), "label n1 disk=ssd, or drop this"),
        ((node("n1"), pod("a", "1", "n1", ports=[80]), pod("new", "1", ports=[80])), "free the host port 80 on n1"),
        (
            (node("n1"), *(pod(f"p{i}", "1", "n1") for i in range(3)), pod("new", "1")),
            "free the place of one pod on n1",
        ),
        (
            (node("n1", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]), pod("new", "1")),
            "mend n1, which is not-ready",
        ),
    ],
)
def test_the_order_says_what_the_plugin_wants(items: tuple[Json, ...], order: str) -> None:
    ((said,),) = orders(*items)
    assert said.startswith(order)


def test_new_nodes_are_counted_for_all_pods_of_the_kind_and_like_the_smallest_that_helps() -> None:
    items = (node("n1", cpu="2"), node("n2"), node("n3", cpu="16"), pod("a", "4", "n2"), pod("b", "15", "n3"))
    snapshot = load_objects((*items, pod("new", "3"), pod("other", "3"), pod("another", "1")))
    found = new_nodes_that_help(SCHEDULER, snapshot, snapshot.pod("shop/new"))
    assert found == NewNodes(like="n3", count=1, pods=2)
    alone = load_objects((*items, pod("new", "3")))
    assert new_nodes_that_help(SCHEDULER, alone, alone.pod("shop/new")) == NewNodes(like="n2", count=1, pods=1)


def test_no_new_node_is_named_if_none_would_help() -> None:
    snapshot = load_objects((node("n1"), pod("new", "6")))
    assert new_nodes_that_help(SCHEDULER, snapshot, snapshot.pod("shop/new")) is None


def _fits(*items: Json) -> bool:
    snapshot: Snapshot = load_objects(items)
    return SCHEDULER.schedule(snapshot, snapshot.pod("shop/new")).node is not None
