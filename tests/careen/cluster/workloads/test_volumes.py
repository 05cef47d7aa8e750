"""Which volumes are still attached to a node."""

from __future__ import annotations

from careen.cluster.workloads.volumes import read_attached
from careen.core.facts.observation import AttachedVolume
from tests.careen.cluster.conftest import Cluster
from tests.careen.core.builders import a_pod


def attach(cluster: Cluster, name: str, node: str, source: dict[str, object]) -> None:
    cluster.server.seed(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": name},
            "spec": {"attacher": "x", "nodeName": node, "source": source},
            "status": {"attached": True},
        }
    )


def claim(cluster: Cluster, name: str, volume: str, namespace: str = "shop") -> None:
    cluster.server.seed(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"volumeName": volume},
        }
    )


async def test_the_volumes_of_pods_that_stay_are_told_apart(cluster: Cluster) -> None:
    for name in ("pv-db", "pv-log"):
        attach(cluster, f"csi-{name}", "n1", {"persistentVolumeName": name})
    attach(cluster, "csi-other", "n2", {"persistentVolumeName": "pv-other"})
    attach(cluster, "csi-inline", "n1", {"inlineVolumeSpec": {}})
    claim(cluster, "log", "pv-log")
    claim(cluster, "log", "pv-db", namespace="another")
    assert await read_attached(cluster.api, "n1", [a_pod("log-1", claims=("log",)), a_pod("bare-1")]) == (
        AttachedVolume(name="csi-inline"),
        AttachedVolume(name="pv-db"),
        AttachedVolume(name="pv-log", stays=True),
    )


async def test_no_claim_is_read_while_no_volume_is_attached(cluster: Cluster) -> None:
    attach(cluster, "csi-other", "n2", {"persistentVolumeName": "pv-other"})
    assert await read_attached(cluster.api, "n1", [a_pod("log-1", claims=("log",))]) == ()
    assert [each.path for each in cluster.wire.asked] == ["/apis/storage.k8s.io/v1/volumeattachments"]
