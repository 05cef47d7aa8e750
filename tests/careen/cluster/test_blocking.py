"""Tests how the agent lists blocking pods: the pods that a rule selects and that block a group of nodes or the whole
cluster."""

from __future__ import annotations

from typing import Any

import pytest

from careen.cluster.pods import list_blocking_pods
from careen.cluster.wire.errors import ClusterError
from careen.core.facts.observation import PlacedPod
from careen.core.facts.policy import BlockingPods, BlockingScope
from careen.core.facts.selectors import Selector
from tests.careen.cluster.conftest import Cluster

BACKUP = BlockingPods(name="backup", selector=Selector.parse("app in (backup),!old"), scope=BlockingScope.CLUSTER)
OF_SHOP = BlockingPods(
    name="shop", selector=Selector.parse("app"), namespaces=("ops", "shop"), scope=BlockingScope.GROUP, group="pool"
)
OF_NODE = BlockingPods(name="node", selector=Selector.parse("app"))


def put(cluster: Cluster, name: str, node: str, namespace: str, phase: str = "Running", **labels: str) -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "labels": labels},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }
    cluster.server.seed(pod)


@pytest.fixture
def cluster_with_blocking_pods(cluster: Cluster) -> Cluster:
    put(cluster, "a", "n1", "shop", app="backup")
    put(cluster, "b", "", "web", "Pending", app="backup")
    put(cluster, "c", "n2", "ops", app="db")
    put(cluster, "done", "n2", "ops", "Succeeded", app="backup")
    put(cluster, "old", "n2", "ops", app="backup", old="")
    put(cluster, "other", "n3", "web")
    return cluster


async def test_a_cluster_wide_rule_lists_the_selected_pods_of_all_namespaces(
    cluster_with_blocking_pods: Cluster,
) -> None:
    found = await list_blocking_pods(cluster_with_blocking_pods.api, (BACKUP, OF_NODE))
    assert found == (
        PlacedPod(title="shop/a", node="n1", rule="backup"),
        PlacedPod(title="web/b", node="", rule="backup"),
    )
    assert [(each.path, each.query["labelSelector"]) for each in cluster_with_blocking_pods.wire.asked] == [
        ("/api/v1/pods", "app in (backup),!old")
    ]


async def test_a_rule_with_listed_namespaces_needs_one_request_per_namespace(
    cluster_with_blocking_pods: Cluster,
) -> None:
    found = await list_blocking_pods(cluster_with_blocking_pods.api, (OF_SHOP,))
    assert [each.title for each in found] == ["ops/c", "ops/old", "shop/a"]
    assert [each.path for each in cluster_with_blocking_pods.wire.asked] == [
        "/api/v1/namespaces/ops/pods",
        "/api/v1/namespaces/shop/pods",
    ]


async def test_a_rule_about_pods_of_the_agents_own_node_needs_no_request(cluster_with_blocking_pods: Cluster) -> None:
    assert await list_blocking_pods(cluster_with_blocking_pods.api, (OF_NODE,)) == ()
    assert cluster_with_blocking_pods.wire.asked == []


async def test_a_refused_request_for_blocking_pods_raises_an_error(cluster_with_blocking_pods: Cluster) -> None:
    cluster_with_blocking_pods.server.api.authorizer = lambda *asked: "pods" not in asked
    with pytest.raises(ClusterError):
        await list_blocking_pods(cluster_with_blocking_pods.api, (BACKUP,))
