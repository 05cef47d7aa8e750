"""Other reboot coordinators are seen by what they run or by the lock they left."""

from __future__ import annotations

import pytest

from careen.cluster.foreign import find_foreign
from tests.careen.cluster.conftest import Cluster

KEY = "weave.works/kured-node-lock"


async def found(cluster: Cluster) -> tuple[str, ...]:
    return await find_foreign(cluster.api, namespace="careen", name="careen")


async def test_our_own_daemonset_is_not_foreign_whatever_it_carries(cluster: Cluster) -> None:
    cluster.put_daemonset(image="ghcr.io/kubereboot/kured:1.23.0", annotations={KEY: '{"nodeID":"n1"}'})
    cluster.put_daemonset("kube-system", "kube-proxy", image="kube-proxy:1")
    assert await found(cluster) == ()


@pytest.mark.parametrize(
    "image",
    ["ghcr.io/kubereboot/kured:1.23.0", "kured", "registry:5000/x/kured@sha256:00", "docker.io/weaveworks/kured:1.0.0"],
)
async def test_a_kured_that_runs_is_seen_by_its_image(cluster: Cluster, image: str) -> None:
    cluster.put_daemonset("kube-system", "reboots", image=image, scheduled=12)
    (sentence,) = await found(cluster)
    assert sentence.startswith("DaemonSet kube-system/reboots runs kured on 12 nodes")


@pytest.mark.parametrize(
    "image", ["example.com/kured-alert-silencer:1", "example.com/not-kured:kured", "kured.example.com/agent:1"]
)
async def test_what_only_sounds_like_kured_is_not(cluster: Cluster, image: str) -> None:
    cluster.put_daemonset("kube-system", "other", image=image)
    assert await found(cluster) == ()


async def test_a_kured_that_runs_nowhere_does_not_matter(cluster: Cluster) -> None:
    cluster.put_daemonset("kube-system", "kured", image="kured:1", scheduled=0)
    assert await found(cluster) == ()


@pytest.mark.parametrize("running", ["desiredNumberScheduled", "currentNumberScheduled"])
async def test_a_kured_that_is_about_to_start_or_to_end_is_seen(cluster: Cluster, running: str) -> None:
    cluster.put_daemonset("kube-system", "kured", image="kured:1", scheduled=None)
    daemonset = cluster.server.get("daemonsets", "kured", "kube-system")
    assert daemonset is not None
    cluster.server.seed({**daemonset, "status": {"desiredNumberScheduled": 0, "currentNumberScheduled": 0, running: 3}})
    assert len(await found(cluster)) == 1


async def test_a_lock_that_a_kured_left_behind_is_live_until_somebody_removes_it(cluster: Cluster) -> None:
    cluster.put_daemonset("kube-system", "kured", image="kured:1", scheduled=0, annotations={KEY: '{"nodeID":"n7"}'})
    (sentence,) = await found(cluster)
    assert "DaemonSet kube-system/kured carries a lock of another coordinator" in sentence
    assert "n7" in sentence
    assert KEY in sentence
