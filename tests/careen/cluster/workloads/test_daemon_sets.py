"""Which of the recorded DaemonSets still want a pod on this node."""

from __future__ import annotations

from typing import Any

import pytest

from careen.cluster.workloads.daemon_sets import read_daemon_sets
from tests.careen.cluster.conftest import Cluster
from tests.careen.core.builders import a_node, an_owner

ROW = an_owner("cni", kind="DaemonSet", uid="uid-cni", replicas=1, ready=1)


def put(cluster: Cluster, spec: dict[str, Any], **metadata: Any) -> None:
    cluster.server.seed(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "cni", "namespace": "shop", "uid": "uid-cni", **metadata},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [], **spec}}},
        }
    )


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param({}, 1, id="no selector"),
        pytest.param({"nodeSelector": {"pool": "web"}}, 1, id="its node selector matches"),
        pytest.param({"nodeSelector": {"pool": "db"}}, 0, id="its node selector does not match"),
        pytest.param(
            affinity({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["db"]}]}),
            0,
            id="its affinity does not match",
        ),
        pytest.param(
            affinity(
                {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["db"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
            ),
            1,
            id="one of its terms matches",
        ),
    ],
)
async def test_a_daemonset_wants_a_pod_on_the_nodes_that_it_selects(
    cluster: Cluster, spec: dict[str, Any], wanted: int
) -> None:
    put(cluster, spec)
    (found,) = await read_daemon_sets(cluster.api, [ROW], a_node(labels={"pool": "web"}))
    assert (found.uid, found.replicas) == ("uid-cni", wanted)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(None, id="deleted"),
        pytest.param({"uid": "another"}, id="recreated"),
        pytest.param(
            {"deletionTimestamp": "2026-03-04T12:00:00Z", "finalizers": ["foregroundDeletion"]}, id="being deleted"
        ),
    ],
)
async def test_a_daemonset_that_is_gone_is_left_out(cluster: Cluster, metadata: dict[str, Any] | None) -> None:
    if metadata is not None:
        put(cluster, {}, **metadata)
    assert await read_daemon_sets(cluster.api, [ROW], a_node()) == ()
