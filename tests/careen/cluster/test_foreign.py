"""Tests how an agent recognises that another reboot coordinator runs in the cluster: by its pods, or by a lock
annotation that it left behind."""

from __future__ import annotations

import pytest

from careen.cluster.foreign import find_foreign
from careen.core.plain_text import one_line
from tests.careen.cluster.conftest import Cluster

KEY = "weave.works/kured-node-lock"


async def found(cluster: Cluster) -> tuple[str, ...]:
    return await find_foreign(cluster.api, namespace="careen", name="careen")


async def test_the_agents_own_daemonset_is_not_another_reboot_coordinator(cluster: Cluster) -> None:
    cluster.put_daemonset(image="ghcr.io/kubereboot/kured:1.23.0", annotations={KEY: '{"nodeID":"n1"}'})
    cluster.put_daemonset("kube-system", "kube-proxy", image="kube-proxy:1")
    assert await found(cluster) == ()


@pytest.mark.parametrize(
    "image",
    ["ghcr.io/kubereboot/kured:1.23.0", "kured", "registry:5000/x/kured@sha256:00", "docker.io/weaveworks/kured:1.0.0"],
)
async def test_a_running_kured_is_recognised_by_its_image(cluster: Cluster, image: str) -> None:
    cluster.put_daemonset("kube-system", "reboots", image=image, scheduled=12)
    (sentence,) = await found(cluster)
    assert sentence.startswith("DaemonSet kube-system/reboots runs kured on 12 nodes")


@pytest.mark.parametrize(
    "image", ["example.com/kured-alert-silencer:1", "example.com/not-kured:kured", "kured.example.com/agent:1"]
)
async def test_an_image_with_a_similar_name_is_not_kured(cluster: Cluster, image: str) -> None:
    cluster.put_daemonset("kube-system", "other", image=image)
    assert await found(cluster) == ()


async def test_a_kured_daemonset_without_pods_is_ignored(cluster: Cluster) -> None:
    cluster.put_daemonset("kube-system", "kured", image="kured:1", scheduled=0)
    assert await found(cluster) == ()


@pytest.mark.parametrize("running", ["desiredNumberScheduled", "currentNumberScheduled"])
async def test_a_kured_daemonset_whose_pods_start_or_end_is_recognised(cluster: Cluster, running: str) -> None:
    cluster.put_daemonset("kube-system", "kured", image="kured:1", scheduled=None)
    daemonset = cluster.server.get("daemonsets", "kured", "kube-system")
    assert daemonset is not None
    cluster.server.seed({**daemonset, "status": {"desiredNumberScheduled": 0, "currentNumberScheduled": 0, running: 3}})
    assert len(await found(cluster)) == 1


async def test_a_kured_daemonset_whose_pods_do_not_exist_yet_is_ignored(cluster: Cluster) -> None:
    cluster.put_daemonset("tenant", "kured", image="kured:1", status={"desiredNumberScheduled": 5})
    assert await found(cluster) == ()


async def test_a_kured_daemonset_with_only_misscheduled_pods_is_recognised(cluster: Cluster) -> None:
    cluster.put_daemonset("tools", "reboots", image="kured:1", status={"numberMisscheduled": 2})
    (sentence,) = await found(cluster)
    assert sentence.startswith("DaemonSet tools/reboots runs kured on 2 nodes")


@pytest.mark.parametrize("text", ['{"nodeID":"n7"}', "\x1b[31mred", '{"nodeID":"manual"}'])
async def test_a_lock_on_a_daemonset_without_pods_is_ignored(cluster: Cluster, text: str) -> None:
    """Any tenant can write a lock annotation on a DaemonSet."""
    cluster.put_daemonset("tenant", "kured", image="kured:1", scheduled=0, annotations={KEY: text})
    cluster.put_daemonset("kube-system", "other", image="other:1", scheduled=0, annotations={KEY: text})
    assert await found(cluster) == ()


async def test_a_lock_on_a_daemonset_with_pods_is_recognised_in_any_namespace(cluster: Cluster) -> None:
    cluster.put_daemonset("tools", "reboots", image="fork:1", scheduled=1, annotations={KEY: '{"nodeID":"n7"}'})
    (sentence,) = await found(cluster)
    assert sentence.startswith(
        "DaemonSet tools/reboots carries a lock of another reboot coordinator (the lock is held by n7)"
    )


@pytest.mark.parametrize("text", ['{"maxOwners":2,"locks":[]}', '{"nodeID":""}', " "])
async def test_a_kured_lock_without_a_holder_is_ignored(cluster: Cluster, text: str) -> None:
    """kured with --concurrency above 1 leaves behind a lock that has no holder."""
    cluster.put_daemonset("kube-system", "kured", image="kured:1", scheduled=0, annotations={KEY: text})
    assert await found(cluster) == ()


@pytest.mark.parametrize(
    "text",
    [
        '{"nodeID":"n7\\u001b[31m\\nn8\\u202e"}',
        "\x1b]0;title\x07" * 10_000,
        '{"nodeID":"manual","reason":"\\u001b[2J"}',
        '{"locks":[{"nodeID":"\\u001b[2J"},{"nodeID":"b"},{"nodeID":"c"},{"nodeID":"d"}]}',
    ],
)
async def test_unsafe_text_in_another_coordinators_lock_is_escaped(cluster: Cluster, text: str) -> None:
    cluster.put_daemonset("kube-system", "kured", image="kured:1", scheduled=0, annotations={KEY: text})
    (sentence,) = await found(cluster)
    assert one_line(sentence) == sentence
    assert len(sentence) < 600


async def test_a_claim_in_the_lock_of_a_kured_daemonset_without_pods_is_reported(cluster: Cluster) -> None:
    cluster.put_daemonset("kube-system", "kured", image="kured:1", scheduled=0, annotations={KEY: '{"nodeID":"n7"}'})
    (sentence,) = await found(cluster)
    assert "DaemonSet kube-system/kured carries a lock of another reboot coordinator" in sentence
    assert "n7" in sentence
    assert KEY in sentence
