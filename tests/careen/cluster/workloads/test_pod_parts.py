"""The parts of a pod that tell which claims it mounts and whether its containers have started again."""

from __future__ import annotations

from typing import Any

from careen.cluster.pods import list_pods_on
from tests.careen.cluster.conftest import Cluster


async def test_a_pod_names_the_claims_that_it_mounts_and_its_finalizers(cluster: Cluster) -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "db"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "tmp", "emptyDir": {}},
    ]
    cluster.put_pod("a", spec={"volumes": volumes}, metadata={"finalizers": ["x.example/report"]})
    (pod,) = await list_pods_on(cluster.api, "n1")
    assert (pod.claims, pod.finalizers) == (("db", "a-scratch"), ("x.example/report",))


async def test_each_restart_of_a_container_changes_the_checksum(cluster: Cluster) -> None:
    container = {"name": "c", "containerID": "containerd://1", "restartCount": 0, "state": {"running": {}}}
    other = {**container, "name": "b"}

    async def checksum(*statuses: dict[str, Any], uid: str = "u") -> int:
        cluster.put_pod("a", status={"containerStatuses": list(statuses)}, metadata={"uid": uid})
        (pod,) = await list_pods_on(cluster.api, "n1")
        return pod.containers

    first = await checksum(container, other)
    assert first == await checksum(other, container), "the order says nothing"
    changed = [
        await checksum({**container, "containerID": "containerd://2"}, other),
        await checksum({**container, "restartCount": 1}, other),
        await checksum({**container, "state": {"running": {"startedAt": "2026-03-04T12:00:00Z"}}}, other),
        await checksum({**container, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 2}, other),
        await checksum(container, other, uid="v"),
    ]
    assert len({first, *changed}) == 6
    assert await checksum() == 0
