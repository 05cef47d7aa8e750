"""Tests which lists a forecast requests from the API server. A forecast always requests some kinds, such as nodes and
pods. A forecast requests other kinds, such as volume claims, only if a pod refers to an object of that kind."""

from __future__ import annotations

import json

import pytest

from careen.cluster import snapshot_reader
from careen.cluster.snapshot_reader import ALWAYS, VOLUMES, pages, server_version
from careen.cluster.wire.errors import Forbidden
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import methods


async def kinds(cluster: Cluster) -> list[str]:
    return [json.loads(page)["kind"] for page in [page async for page in pages(cluster.api)]]


async def test_a_snapshot_without_volume_claims_or_device_claims_lists_only_the_basic_kinds(cluster: Cluster) -> None:
    cluster.put_node("n1")
    cluster.put_pod("a")
    assert await kinds(cluster) == [
        "NodeList",
        "PodList",
        "NamespaceList",
        "ServiceList",
        "ReplicationControllerList",
        "ReplicaSetList",
        "StatefulSetList",
        "PodDisruptionBudgetList",
    ]
    assert methods(cluster.wire.asked) == [f"GET {path}" for path in ALWAYS]


async def test_a_snapshot_with_a_volume_claim_also_lists_the_storage_objects(cluster: Cluster) -> None:
    cluster.put_pod("a", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]})
    await kinds(cluster)
    assert methods(cluster.wire.asked) == [f"GET {path}" for path in (*ALWAYS, *VOLUMES)]


async def test_a_snapshot_with_a_pod_of_a_job_also_lists_the_jobs(cluster: Cluster) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "u", "controller": True}
    cluster.put_pod("a", metadata={"ownerReferences": [owner]})
    assert (await kinds(cluster))[-1] == "JobList"
    assert methods(cluster.wire.asked) == [f"GET {path}" for path in (*ALWAYS, *snapshot_reader.JOBS)]


async def test_a_snapshot_with_a_device_claim_also_lists_the_devices(cluster: Cluster) -> None:
    cluster.put_pod("a", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]})
    found = await kinds(cluster)
    assert found[-2:] == [
        "ResourceClaimList",
        "DeviceClassList",
    ] or "GET /apis/resource.k8s.io/v1beta1/deviceclasses" in methods(cluster.wire.asked)


async def test_many_pods_are_read_in_pages(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1100):
        cluster.put_pod(f"p{number}")
    sizes = [len(json.loads(page)["items"]) for page in [page async for page in pages(cluster.api)]]
    assert sizes[1:4] == [500, 500, 100]


async def test_a_snapshot_fails_if_the_agent_may_not_list_a_kind(cluster: Cluster) -> None:
    """The forecast would be wrong if the snapshot lacked the objects of one kind."""
    cluster.server.api.authorizer = lambda user, verb, group, resource, namespace, name: (
        resource != "poddisruptionbudgets"
    )
    with pytest.raises(Forbidden, match="poddisruptionbudgets"):
        await kinds(cluster)


async def test_the_servers_version_is_read(cluster: Cluster) -> None:
    assert (await server_version(cluster.api)).startswith("v1.")


def test_a_forecast_lists_exactly_the_kinds_that_the_rbac_rules_allow() -> None:
    from careen.cluster.access import FORECAST_RIGHTS, needed_rights

    named = {
        right.resource
        for right in (
            *FORECAST_RIGHTS,
            *needed_rights(node="n", namespace="n", daemonset="d", config_map="c", forecast=True),
        )
        if right.verb == "list"
    }
    listed = {path.rsplit("/", 1)[-1] for path in (*ALWAYS, *VOLUMES, *snapshot_reader.JOBS, *snapshot_reader.DEVICES)}
    assert listed - named == set()
