"""Tests the running embedded cluster: scheduler_core places pods, and simulated kubelets run them on hosts that
reboot.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from careen.cli import cli
from drydock.controllers.ownership import PODS
from drydock.hosts.disturbances import edit_node, with_cordon
from drydock.hosts.machines import SimulatedHost
from drydock.hosts.scheduler_process import run_scheduler_process
from drydock.rollout.cluster import EmbeddedCluster, running_cluster
from drydock.rollout.kubeconfig import write_kubeconfig
from drydock.rollout.monitoring_server import serving
from drydock.rollout.sample_cluster import node_names
from drydock.rollout.timings import Timings
from drydock.server.api_errors import ApiError
from drydock.server.evictions import evict
from drydock.server.kinds.resources import resource_named
from drydock.server.verbs import DeleteOptions
from drydock.zoo import CITIZENS, IN_THE_DEMO
from drydock.zoo.citizen import NAMESPACE, Habitat
from drydock.zoo.monitoring import Monitoring
from tests.patience import until

FAST = Timings(pod_start=0.05, pod_stop=0.03, shutdown=0.05, boot=0.1, kubelet_start=0.05)
NODES = resource_named("nodes")


def cluster_of(folder: Path, nodes: int, **options: Any) -> Any:
    return running_cluster(folder, nodes=nodes, seed=1, timings=FAST, **options)


def pods(cluster: EmbeddedCluster, namespace: str = "shop") -> list[dict[str, Any]]:
    return [dict(s.content) for s in cluster.api.store.items(PODS.storage, namespace)]


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 12])
async def test_the_sample_workloads_fit_on_any_number_of_nodes(tmp_path: Path, nodes: int) -> None:
    async with cluster_of(tmp_path, nodes) as cluster:
        await cluster.wait_until_settled(20)
        assert {p["status"]["phase"] for p in pods(cluster)} == {"Running"}


async def test_careen_scheduler_schedules_as_a_process_of_its_own(tmp_path: Path) -> None:
    async with cluster_of(tmp_path / "hosts", 2, schedule=partial(run_scheduler_process, tmp_path)) as cluster:
        await cluster.wait_until_settled(60)
    bound = {p["metadata"]["name"] for p in pods(cluster)}
    said = (tmp_path / "scheduler.log").read_text()
    assert bound <= {line.split('pod="shop/')[1].split('"')[0] for line in said.splitlines() if 'pod="shop/' in line}


async def test_careens_daemonset_in_the_demo_lists_the_arguments_of_its_agents(tmp_path: Path) -> None:
    """`careen config` and `careen forecast` read these arguments, as in a real cluster."""
    async with cluster_of(tmp_path, 1, agent_arguments=["--concurrency", "7"]) as cluster:
        config = write_kubeconfig(tmp_path / "kubeconfig", cluster.api.url)
        result = await asyncio.to_thread(CliRunner().invoke, cli, ["config", "--kubeconfig", str(config)])
    assert result.exit_code == 0, result.output
    assert ["concurrency", "7", "--concurrency"] in [line.split() for line in result.output.splitlines()]


async def test_all_pods_of_the_sample_fit_while_two_nodes_are_down(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 12) as cluster:
        await cluster.wait_until_settled(20)
        for name in ("node-02", "node-07"):
            edit_node(cluster, name, lambda node: with_cordon(node, cordoned=True))
        left = [p for p in pods(cluster) if p["spec"]["nodeName"] in ("node-02", "node-07")]
        for pod in left:
            cluster.api.verbs.delete(PODS, "shop", pod["metadata"]["name"], DeleteOptions(), actor="person")
        gone = {pod["metadata"]["uid"] for pod in left}
        await until(lambda: gone.isdisjoint(p["metadata"]["uid"] for p in pods(cluster)))
        await cluster.wait_until_settled(20)
        assert {p["spec"]["nodeName"] for p in pods(cluster)}.isdisjoint({"node-02", "node-07"})


async def test_a_budget_refuses_evictions_until_the_evicted_pod_is_replaced_on_another_node(
    tmp_path: Path,
) -> None:
    async with cluster_of(tmp_path, 5) as cluster:
        await cluster.wait_until_settled(20)
        first, second = (p for p in pods(cluster) if p["metadata"]["labels"]["app"] == "cache")
        node = first["spec"]["nodeName"]
        edit_node(cluster, node, lambda n: with_cordon(n, cordoned=True))
        await until(
            lambda: is_evicted(cluster, first["metadata"]["name"])
        )  # as soon as the budget's status knows that all run
        with pytest.raises(Exception, match="disruption budget"):
            evict(cluster.api.verbs, "shop", second["metadata"]["name"], DeleteOptions(), actor="agent")
        await until(lambda: first["metadata"]["uid"] not in [p["metadata"]["uid"] for p in pods(cluster)])
        await cluster.wait_until_settled(20)
        again = [p for p in pods(cluster) if p["metadata"]["labels"]["app"] == "cache"]
        assert first["metadata"]["name"] not in [p["metadata"]["name"] for p in again]
        assert node not in [p["spec"]["nodeName"] for p in again if p["metadata"]["name"] != second["metadata"]["name"]]
        await until(
            lambda: is_evicted(cluster, second["metadata"]["name"])
        )  # as soon as the budget's status has followed


def is_evicted(cluster: EmbeddedCluster, name: str) -> bool:
    try:
        evict(cluster.api.verbs, "shop", name, DeleteOptions(), actor="agent")
    except ApiError:
        return False
    return True


async def test_a_pending_pod_reports_its_reason_and_is_placed_when_there_is_room(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 3) as cluster:
        await cluster.wait_until_settled(20)
        for node in ("node-01", "node-02", "node-03"):
            edit_node(cluster, node, lambda n: with_cordon(n, cordoned=True))
        cluster.api.verbs.create(
            PODS,
            "shop",
            {"metadata": {"name": "late"}, "spec": {"containers": [{"name": "main", "image": "x"}]}},
            actor="person",
        )

        def scheduled() -> dict[str, Any]:
            late = cluster.api.verbs.read(PODS, "shop", "late").content
            return {c["type"]: c for c in late["status"].get("conditions") or []}.get("PodScheduled", {})

        await until(lambda: scheduled().get("status") == "False")
        assert scheduled()["reason"] == "Unschedulable"
        assert scheduled()["message"].startswith("0/3 nodes are available: 3 node(s) were unschedulable")
        edit_node(cluster, "node-02", lambda n: with_cordon(n, cordoned=False))
        await until(lambda: scheduled().get("status") == "True")
        assert cluster.api.verbs.read(PODS, "shop", "late").content["spec"]["nodeName"] == "node-02"


async def test_pods_of_higher_priority_are_placed_before_older_pods(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.wait_until_settled(20)
        cluster.api.verbs.create(
            resource_named("priorityclasses"), "", {"metadata": {"name": "high"}, "value": 1000}, actor="person"
        )
        names = [("low-1", ""), ("low-2", ""), ("high", "high")]
        for name, priority in names:
            spec: dict[str, Any] = {"containers": [{"name": "main", "image": "x"}]}
            cluster.api.verbs.create(
                PODS,
                "shop",
                {"metadata": {"name": name}, "spec": spec | ({"priorityClassName": priority} if priority else {})},
                actor="person",
            )
        await cluster.wait_until_settled(20)
        bound = [c.key[1] for c in cluster.api.store.journal if c.verb == "bind" and c.key[1] in dict(names)]
        assert bound == ["high", "low-1", "low-2"]


async def test_a_rebooting_host_goes_down_and_comes_back_with_a_new_boot_id(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 3) as cluster:
        await cluster.wait_until_settled(20)
        told: list[tuple[str, str]] = []
        cluster.on_down = lambda host: told.append(("down", host.name))
        cluster.on_up = lambda host: told.append(("up", host.name))
        host: SimulatedHost = cluster.hosts.by_name["node-02"]
        old_boot, stayed = (
            host.boot_id,
            [p["metadata"]["uid"] for p in pods(cluster) if p["spec"]["nodeName"] == "node-02"],
        )
        cluster.hosts.need_reboot("node-02")
        assert host.sentinel.exists()
        process = await asyncio.create_subprocess_exec(*host.reboot_command.split())
        await process.wait()
        await until(lambda: not host.is_up)
        assert not _is_ready(cluster, "node-02")
        await until(lambda: host.is_up)
        node = cluster.api.verbs.read(NODES, "", "node-02").content
        assert (_is_ready(cluster, "node-02"), node["status"]["nodeInfo"]["bootID"]) == (True, host.boot_id)
        assert host.boot_id != old_boot
        assert host.boot_id_file.read_text() == host.boot_id + "\n"
        assert not host.sentinel.exists()
        assert [(e.what, e.host) for e in cluster.hosts.log] == [
            (what, "node-02") for what in ("need", "asked", "down", "booted", "ready")
        ]
        assert [e.at for e in cluster.hosts.log] == sorted(e.at for e in cluster.hosts.log)
        assert told == [("down", "node-02"), ("up", "node-02")]
        await cluster.wait_until_settled(20)
        restarts = [
            p["status"]["containerStatuses"][0]["restartCount"] for p in pods(cluster) if p["metadata"]["uid"] in stayed
        ]
        assert Counter(restarts) == Counter({1: len(stayed)})


async def test_terminating_pods_of_an_unavailable_host_end_after_its_boot(tmp_path: Path) -> None:
    async with running_cluster(
        tmp_path,
        nodes=3,
        seed=1,
        timings=Timings(pod_start=0.05, pod_stop=0.03, shutdown=0.0, boot=0.5, kubelet_start=0.0),
    ) as cluster:
        await cluster.wait_until_settled(20)
        host = cluster.hosts.by_name["node-02"]
        host.asked_file.touch()
        await until(lambda: not host.is_up)
        victim = next(p for p in pods(cluster) if p["spec"]["nodeName"] == "node-02")
        cluster.api.verbs.delete(PODS, "shop", victim["metadata"]["name"], DeleteOptions(), actor="person")
        await until(lambda: victim["metadata"]["uid"] not in [p["metadata"]["uid"] for p in pods(cluster)])
        assert went_after_boot(cluster, victim, "node-02")


async def test_a_pod_that_is_terminating_when_its_host_goes_down_ends_after_the_boot(tmp_path: Path) -> None:
    async with running_cluster(
        tmp_path,
        nodes=3,
        seed=1,
        timings=Timings(pod_start=0.05, pod_stop=2.0, shutdown=0.0, boot=2.5, kubelet_start=0.0, spread=0.0),
    ) as cluster:
        await cluster.wait_until_settled(20)
        victim = next(p for p in pods(cluster) if p["spec"]["nodeName"] == "node-02")
        host = cluster.hosts.by_name["node-02"]
        cluster.api.verbs.delete(PODS, "shop", victim["metadata"]["name"], DeleteOptions(), actor="person")
        host.asked_file.touch()
        await until(lambda: not host.is_up)
        await until(lambda: victim["metadata"]["uid"] not in [p["metadata"]["uid"] for p in pods(cluster)])
        assert went_after_boot(cluster, victim, "node-02")


def went_after_boot(cluster: EmbeddedCluster, pod: dict[str, Any], node: str) -> bool:
    """Whether the pod was removed only after its host had booted. The test reads the journal, because a test that polls
    could miss the moment of the boot.
    """
    (booted,) = (event.at for event in cluster.hosts.log if (event.what, event.host) == ("booted", node))
    (gone,) = (
        change.at
        for change in cluster.api.store.journal
        if change.after is None
        and change.before is not None
        and change.before.content["metadata"].get("uid") == pod["metadata"]["uid"]
    )
    return gone > booted


async def test_the_same_seed_gives_the_same_boot_ids(tmp_path: Path) -> None:
    boots = []
    for run in ("one", "two"):
        async with cluster_of(tmp_path / run, 2) as cluster:
            boots.append([h.boot_id for h in cluster.hosts.by_name.values()])
    assert boots[0] == boots[1]
    assert len(set(boots[0])) == 2


def _is_ready(cluster: EmbeddedCluster, name: str) -> bool:
    conditions = cluster.api.verbs.read(NODES, "", name).content["status"]["conditions"]
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def test_the_citizens_of_the_demo_settle_beside_its_workloads(tmp_path: Path) -> None:
    """Their pods belong to kinds that this server does not have; the garbage collector leaves them alone."""
    habitat = Habitat(nodes=tuple(node_names(4)), chance=random.Random(1), pace=0.01)
    citizens = [CITIZENS[name](habitat) for name in IN_THE_DEMO]
    async with cluster_of(tmp_path, 4, citizens=citizens) as cluster:
        await cluster.wait_until_settled(20)
        kinds = Counter(pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods(cluster, NAMESPACE))
        assert {"StrimziPodSet", "CloneSet", "ReplicaSet", "StatefulSet", "DaemonSet", "Node"} <= set(kinds)
        assert kinds["StrimziPodSet"] == 4
        assert len(cluster.api.verbs.eviction_webhooks) == 3


async def test_the_zoos_prometheus_answers_instant_queries_over_http(tmp_path: Path) -> None:
    monitoring = Monitoring(Habitat(nodes=(), chance=random.Random(1), pace=0.001))
    async with (
        serving(monitoring) as url,
        cluster_of(tmp_path, 1, citizens=[monitoring.citizen()]),
        aiohttp.ClientSession() as session,
    ):
        found: list[Any] = []
        while not found:
            async with session.post(f"{url}/api/v1/query", data={"query": "ALERTS"}) as answer:
                found = (await answer.json())["data"]["result"]
            await asyncio.sleep(0.01)
        assert "Watchdog" in {row["metric"]["alertname"] for row in found}
