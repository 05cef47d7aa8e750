"""Tests `careen snapshot`, and `careen explain` on the live cluster and on a snapshot."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from drydock.server.kinds.resources import resource_named
from scheduler_core.snapshot.dump import read_dump
from tests.careen.cli.conftest import Desk


def a_node(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_pod(name: str, node: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "nodeName": node,
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "env": [{"name": "TOKEN", "value": "tell-tale"}],
                    "resources": {"requests": {"cpu": cpu}},
                }
            ],
            **spec,
        },
        "status": {"phase": "Running"},
    }


@pytest.fixture
def shop(desk: Desk) -> Desk:
    desk.server.seed(
        a_node("n1"),
        a_node("n2", cpu="2"),
        a_node("n3", unschedulable=True),
        a_pod("web", "n1"),
        a_pod("db", "n2", cpu="1500m"),
    )
    return desk


def rows(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()[2:]]


def test_explain_lists_each_node_with_its_first_refusal(shop: Desk) -> None:
    output = shop.ok("explain", "shop/web", "--all")
    assert output.startswith(
        "The pod shop/web is on n1 and requests 1000m cpu and 0Mi memory. The pod would go to n1; 1 of 3 nodes can "
        "hold the pod."
    )
    assert [(row[0], " ".join(row[2:])) for row in rows(output)[1:]] == [
        ("n1", "passes"),
        ("n2", "NodeResourcesFit: Insufficient cpu"),
        ("n3", "NodeUnschedulable: node(s) were unschedulable"),
    ]


def test_explain_groups_refusing_nodes_by_reason(shop: Desk) -> None:
    output = shop.ok("explain", "shop/web")
    assert [" ".join(row) for row in rows(output)[2:]] == [
        "",
        "1 node cannot hold the pod: NodeResourcesFit: Insufficient cpu (n2)",
        "1 node cannot hold the pod: NodeUnschedulable: node(s) were unschedulable (n3)",
    ]


def test_explain_of_one_node_shows_the_result_of_each_plugin(shop: Desk) -> None:
    output = shop.ok("explain", "shop/web", "--node", "n3")
    assert ["NodeUnschedulable", "filter", "node(s)", "were", "unschedulable"] in rows(output)
    assert ["NodeResourcesFit", "filter", "passes"] in rows(output)


def test_explain_as_json_contains_the_best_node_and_each_refusal(shop: Desk) -> None:
    explained = shop.json("explain", "shop/web")
    assert (explained["node"], explained["best"]) == ("n1", ["n1"])
    assert {row["node"]: (row["refusal"] or {}).get("plugin") for row in explained["nodes"]} == {
        "n1": None,
        "n2": "NodeResourcesFit",
        "n3": "NodeUnschedulable",
    }


def test_explain_prints_the_same_result_for_a_dump_as_for_the_live_cluster(shop: Desk, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json.gz"
    assert "list pages" in shop.ok("snapshot", "--file", str(dump))
    live = shop.ok("explain", "shop/web")
    assert shop.ok("explain", "shop/web", "--from", str(dump), "--kubeconfig", "/nowhere") == live
    assert b"tell-tale" not in gzip.decompress(dump.read_bytes())


def test_a_claim_whose_device_was_not_ready_in_time_refuses_the_nodes(shop: Desk, tmp_path: Path) -> None:
    device = {"request": "r", "driver": "d", "pool": "p", "device": "x", "bindingConditions": ["ready"]}
    allocation = {"allocationTimestamp": "2026-01-01T00:00:00Z", "devices": {"results": [device]}}
    shop.server.seed(
        a_pod("trainer", "n1", resourceClaims=[{"name": "r", "resourceClaimName": "gpu"}]),
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "gpu", "namespace": "shop", "uid": "u"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "s"}}]}},
            "status": {
                "allocation": allocation,
                "reservedFor": [{"resource": "pods", "name": "trainer"}],
            },
        },
    )
    dump = tmp_path / "dump.json.gz"
    shop.ok("snapshot", "--file", str(dump))
    for source in ((), ("--from", str(dump), "--kubeconfig", "/nowhere")):
        said = shop.ok("explain", "shop/trainer", "--node", "n1", *source)
        assert "DynamicResources filter resourceclaim not available on the node" in map(" ".join, rows(said)), said


def test_snapshot_leaves_no_partial_dump_if_a_read_fails(shop: Desk, tmp_path: Path) -> None:
    shop.server.api.authorizer = lambda *asked: "services" not in asked
    dump = tmp_path / "dump.json.gz"
    result = shop.run("snapshot", "--file", str(dump))
    assert result.exit_code == 1
    assert "a right is missing" in result.output
    assert not dump.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            ("explain", "shop/nobody"),
            "there is no pending or running pod 'shop/nobody'",
            id="the pod does not exist",
        ),
        pytest.param(("explain", "shop/wbe"), "'shop/wbe'; did you mean shop/web", id="the pod name is misspelled"),
        pytest.param(("explain", "web"), "'web'; did you mean shop/web?", id="the pod is in another namespace"),
        pytest.param(("explain", "x/zzzz"), "'x/zzzz'; write the pod as NAMESPACE/POD", id="no pod has a similar name"),
        pytest.param(
            ("explain", "shop/web", "--node", "n9"), "there is no Node 'n9' among the 3", id="the node does not exist"
        ),
    ],
)
def test_explain_refuses_a_missing_pod_or_node_with_exit_code_2(
    shop: Desk, arguments: tuple[str, ...], sentence: str
) -> None:
    result = shop.run(*arguments)
    assert (result.exit_code, sentence in result.output) == (2, True), result.output


def test_explain_refuses_an_invalid_dump_with_exit_code_2(shop: Desk, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("kind: Pod")
    result = shop.run("explain", "shop/web", "--from", str(nonsense))
    assert (result.exit_code, "this is not a gzip file" in result.output) == (2, True), result.output


def test_explain_refuses_a_pod_of_another_scheduler(shop: Desk) -> None:
    shop.server.seed(a_pod("odd", "n1", schedulerName="other"))
    result = shop.run("explain", "shop/odd")
    assert (result.exit_code, "--scheduler-config FILE" in result.output) == (1, True), result.output


def test_snapshot_starts_again_if_a_list_expires_between_pages(shop: Desk, tmp_path: Path) -> None:
    """The server checks the rights of each request. The test uses this check to drop the server's history between two
    pages of a list, so that the second page gets status 410."""
    shop.server.seed(*(a_pod(f"p{number:03}", "n1", cpu="1m") for number in range(600)))
    lists_of_pods: list[str] = []

    def may(_user: str, verb: str, _group: str, resource: str, _namespace: str, _name: str) -> bool:
        if (verb, resource) == ("list", "pods"):
            lists_of_pods.append(verb)
            if len(lists_of_pods) == 2:
                shop.server.store.remove(resource_named("pods").storage, ("shop", "p000"), actor="test", verb="delete")
                shop.server.store.forget_history()
        return True

    shop.server.api.authorizer = may
    shop.ok("snapshot", "--file", str(tmp_path / "dump.json.gz"))
    with (tmp_path / "dump.json.gz").open("rb") as file:
        names = {pod.name for pod in read_dump(file).snapshot.placed_pods}
    assert names == {"web", "db", *(f"p{number:03}" for number in range(1, 600))}
    assert len(lists_of_pods) == 4
