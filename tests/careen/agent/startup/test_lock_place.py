"""At its start, the agent looks up the DaemonSet that owns its pod, so that without explicit flags all agents use the
same lock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from careen.agent.startup import lock_place
from careen.agent.startup.lock_place import Judged, LockPlace, OwnPod
from careen.cluster.wire.client import connect
from careen.cluster.wire.errors import Unclear
from careen.core.facts import keys
from drydock.server.testing import running_server
from tests.careen.virtual_shell import Meddling, VirtualClock, api_on

OURS, KUREDS = LockPlace("careen", "careen"), LockPlace("kube-system", "kured")
POD = OwnPod(namespace="careen", name="careen-x7k2p")


def a_daemonset(place: LockPlace) -> dict[str, Any]:
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": place.name, "namespace": place.namespace},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod},
    }


def a_pod(owner: LockPlace | None = OURS) -> dict[str, Any]:
    owners = (
        [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner.name, "uid": "u", "controller": True}]
        if owner
        else []
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD.name, "namespace": POD.namespace, "ownerReferences": owners},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


class Asked:
    """A cluster, and a connection to it that records the agent's requests."""

    def __init__(self, server: Any, wire: Meddling) -> None:
        self.server, self.wire = server, wire

    async def judge(self, named: LockPlace, *, is_given: bool, pod: OwnPod | None = POD) -> Judged:
        return await lock_place.judge(
            api_on(self.wire, VirtualClock()), named, is_given=is_given, pod=pod, annotation=keys.LOCK_ANNOTATION
        )


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Asked]:
    async with running_server() as server:
        transport = connect(server.write_kubeconfig(tmp_path / "kubeconfig"), part="test")
        yield Asked(server, Meddling(transport))
        transport.close()


@pytest.mark.parametrize("is_given", [True, False])
async def test_an_agent_that_uses_its_own_daemonsets_lock_reads_only_its_own_pod(
    cluster: Asked, is_given: bool
) -> None:
    cluster.server.seed(a_daemonset(OURS), a_pod())
    assert await cluster.judge(OURS, is_given=is_given) == Judged()
    assert [request.path for request in cluster.wire.asked] == ["/api/v1/namespaces/careen/pods/careen-x7k2p"]


async def test_an_agent_of_careens_daemonset_refuses_kureds_lock_if_no_flag_chooses_this_lock(cluster: Asked) -> None:
    cluster.server.seed(a_daemonset(OURS), a_daemonset(KUREDS), a_pod())
    judged = await cluster.judge(KUREDS, is_given=False)
    assert judged.refusal == (
        "this agent belongs to DaemonSet careen/careen, but would use the lock of DaemonSet kube-system/kured, because "
        "--ds-namespace and --ds-name are not both given. "
        "With two locks, two nodes could reboot at once. Give --ds-namespace=careen --ds-name=careen"
    )


async def test_an_agent_uses_kureds_lock_with_a_warning_if_the_flags_give_kureds_daemonset(cluster: Asked) -> None:
    cluster.server.seed(a_daemonset(OURS), a_daemonset(KUREDS), a_pod())
    assert await cluster.judge(KUREDS, is_given=True) == Judged(
        remark="this agent belongs to DaemonSet careen/careen and shares the lock of DaemonSet kube-system/kured"
    )


@pytest.mark.parametrize(("pod", "is_given"), [(POD, True), (None, False)])
async def test_an_agent_refuses_a_lock_on_a_daemonset_that_does_not_exist(
    cluster: Asked, pod: OwnPod | None, is_given: bool
) -> None:
    cluster.server.seed(a_pod())
    judged = await cluster.judge(KUREDS, is_given=is_given, pod=pod)
    assert (
        judged.refusal
        == "DaemonSet kube-system/kured does not exist, but it must carry the lock; name the agents' own DaemonSet "
        "with --ds-namespace and --ds-name"
    )


@pytest.mark.parametrize("pods", [[], [a_pod(None)]], ids=["the pod does not exist", "the pod has no controller"])
async def test_an_agent_whose_pod_has_no_controller_needs_the_flags_ds_namespace_and_ds_name(
    cluster: Asked, pods: list[dict[str, Any]]
) -> None:
    cluster.server.seed(a_daemonset(KUREDS), *pods)
    assert (
        "the agent cannot tell which DaemonSet controls its own pod careen/careen-x7k2p"
        in (await cluster.judge(KUREDS, is_given=False)).refusal
    )
    assert await cluster.judge(KUREDS, is_given=True) == Judged()


async def test_an_agent_outside_a_pod_only_checks_that_the_default_daemonset_exists(cluster: Asked) -> None:
    cluster.server.seed(a_daemonset(KUREDS))
    assert await cluster.judge(OURS, is_given=True, pod=None) == Judged()
    assert cluster.wire.asked == []
    assert await cluster.judge(KUREDS, is_given=False, pod=None) == Judged()
    assert len(cluster.wire.asked) == 1


async def test_the_search_for_the_lock_raises_an_error_if_the_api_server_does_not_answer(cluster: Asked) -> None:
    cluster.wire.before = lambda _: Unclear("lost")
    with pytest.raises(Unclear):
        await cluster.judge(OURS, is_given=False)
