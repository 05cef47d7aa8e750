"""Each citizen of `drydock.zoo` behaves like the operator that it imitates. No agent acts: a person cordons and
evicts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from drydock.server.api_errors import ApiError
from drydock.server.evictions import evict
from drydock.server.verbs import DeleteOptions
from drydock.zoo.citizen import BUDGETS, NAMESPACE, is_cordoned, pod_named, pods_of_the_zoo, serves
from drydock.zoo.monitoring import Monitoring
from drydock.zoo.volumes import STUCK_POD, attached_to, finish
from tests.careen.chaos.citizens.prometheus import add_prometheus
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World


def play(story: Callable[[World], Awaitable[None]], *citizens: str, **shape: Any) -> None:
    async def run() -> None:
        world = World(Shape(nodes=3, zoo=citizens, **shape))
        await asyncio.sleep(5.0)
        await story(world)
        world.stop()
        assert not world.broken

    run_virtually(run())


def labelled(world: World, label: str, value: str) -> list[Any]:
    return [pod for pod in pods_of_the_zoo(world.zoo.verbs) if pod["metadata"]["labels"].get(label) == value]


def evicted(world: World, pod: str, *, dry_run: bool = False) -> int:
    """The status of the answer."""
    try:
        evict(world.zoo.verbs, NAMESPACE, pod, DeleteOptions(dry_run=dry_run), actor="person")
    except ApiError as refusal:
        return refusal.code
    return 201


def has_budget(world: World, name: str) -> bool:
    return world.zoo.verbs.store.get(BUDGETS.storage, (NAMESPACE, name)) is not None


def test_longhorn_removes_the_budget_when_the_node_is_cordoned_and_its_volumes_are_detached() -> None:
    async def story(world: World) -> None:
        budget, manager = "instance-manager-n1", "instance-manager-n1"
        assert evicted(world, manager) == 429
        people.cordon(world, "n1")
        await asyncio.sleep(30.0)
        assert has_budget(world, budget), "its volume is still attached"
        (shelf,) = [pod for pod in labelled(world, "app", "shelf") if pod["spec"]["nodeName"] == "n1"]
        assert evicted(world, shelf["metadata"]["name"]) == 201
        await asyncio.sleep(30.0)
        assert not attached_to(world.zoo.verbs, "n1")
        assert not has_budget(world, budget)
        assert evicted(world, manager) == 201
        await asyncio.sleep(20.0)
        assert pod_named(world.zoo.verbs, manager) is None, "a cordoned node gets no instance manager"
        people.cordon(world, "n2")
        (shelf,) = [pod for pod in labelled(world, "app", "shelf") if pod["spec"]["nodeName"] == "n2"][:1]
        for pod in [pod for pod in labelled(world, "app", "shelf") if pod["spec"]["nodeName"] == "n2"]:
            evicted(world, pod["metadata"]["name"])
        await asyncio.sleep(30.0)
        assert has_budget(world, "instance-manager-n2"), "n1 is down, so n2 has the last healthy replica"
        people.uncordon(world, "n1")
        await asyncio.sleep(60.0)
        assert not has_budget(world, "instance-manager-n2"), "the replica on n1 is rebuilt"

    play(story, "longhorn")


@pytest.mark.parametrize(
    ("citizen", "label", "role", "owner"),
    [
        ("cloudnative-pg", "cnpg.io/instanceRole", "primary", "Cluster"),
        ("zalando-postgres", "spilo-role", "master", "StatefulSet"),
    ],
)
def test_the_primary_of_a_database_moves_when_its_node_is_cordoned(
    citizen: str, label: str, role: str, owner: str
) -> None:
    async def story(world: World) -> None:
        (primary,) = labelled(world, label, role)
        name, node = primary["metadata"]["name"], primary["spec"]["nodeName"]
        assert primary["metadata"]["ownerReferences"][0]["kind"] == owner
        await asyncio.sleep(60.0)
        assert evicted(world, name) == 429
        people.cordon(world, node)
        await asyncio.sleep(15.0)
        (successor,) = labelled(world, label, role)
        assert not is_cordoned(world.zoo.verbs, successor["spec"]["nodeName"])
        assert evicted(world, successor["metadata"]["name"]) == 429
        assert evicted(world, name) == 201

    play(story, citizen)


def test_kubevirt_refuses_and_migrates_at_the_first_real_eviction() -> None:
    async def story(world: World) -> None:
        (source,) = labelled(world, "kubevirt.io/domain", "vm-1")
        name, node = source["metadata"]["name"], source["spec"]["nodeName"]
        people.cordon(world, node)
        assert evicted(world, name, dry_run=True) == 429
        await asyncio.sleep(60.0)
        assert labelled(world, "kubevirt.io/domain", "vm-1") == [source], "a dry run starts no migration"
        with pytest.raises(ApiError, match='denied the request: Eviction triggered evacuation of VMI "zoo/vm-1"'):
            evict(world.zoo.verbs, NAMESPACE, name, DeleteOptions(), actor="person")
        await asyncio.sleep(10.0)
        assert evicted(world, name) == 429
        await asyncio.sleep(60.0)
        (target,) = labelled(world, "kubevirt.io/domain", "vm-1")
        assert target["spec"]["nodeName"] != node
        assert serves(target)

    play(story, "kubevirt")


def test_the_drain_cleaner_refuses_with_500_and_the_operator_moves_the_broker() -> None:
    async def story(world: World) -> None:
        broker = labelled(world, "app", "kafka")[0]
        name, node = broker["metadata"]["name"], broker["spec"]["nodeName"]
        people.cordon(world, node)
        assert evicted(world, name, dry_run=True) == 500
        await asyncio.sleep(30.0)
        assert labelled(world, "app", "kafka")[0] == broker
        assert evicted(world, name) == 500
        await asyncio.sleep(30.0)
        moved = pod_named(world.zoo.verbs, name)
        assert moved is not None
        assert moved["spec"]["nodeName"] != node

    play(story, "strimzi-drain-cleaner")


def test_pod_graceful_drain_answers_201_and_deletes_the_pod_later() -> None:
    async def story(world: World) -> None:
        name = labelled(world, "app", "front")[0]["metadata"]["name"]
        assert evicted(world, name, dry_run=True) == evicted(world, name) == 201
        await asyncio.sleep(15.0)
        assert serves(pod_named(world.zoo.verbs, name))
        await asyncio.sleep(20.0)
        assert pod_named(world.zoo.verbs, name) is None

    play(story, "pod-graceful-drain")


def test_rook_keeps_every_other_failure_domain_up_while_one_is_down_or_recovers() -> None:
    async def story(world: World) -> None:
        def health() -> float:
            return float(world.zoo.series(world.zoo.verbs)[0][1])

        def osd_of(node: str) -> str:
            return str(labelled(world, "topology-location-host", node)[0]["metadata"]["name"])

        assert health() == 0.0
        people.cordon(world, "n1")
        assert evicted(world, osd_of("n1")) == 201
        await asyncio.sleep(15.0)
        assert health() == 1.0
        assert evicted(world, osd_of("n2")) == 429
        people.uncordon(world, "n1")
        await asyncio.sleep(15.0)
        assert serves(labelled(world, "topology-location-host", "n1")[0])
        assert health() == 1.0, "the data on n1 is not yet clean"
        await asyncio.sleep(30.0)
        assert health() == 0.0
        assert evicted(world, osd_of("n2")) == 201

    play(story, "rook-ceph")


def test_the_autoscaler_raises_the_replicas_while_pods_are_missing_and_lowers_them_later() -> None:
    async def story(world: World) -> None:
        def replicas() -> int:
            return int((world.server.get("deployments", "api", NAMESPACE) or {})["spec"]["replicas"])

        world.zoo.broken.add("api")
        evicted(world, labelled(world, "app", "api")[0]["metadata"]["name"])
        await asyncio.sleep(30.0)
        assert replicas() > 6
        world.zoo.broken.clear()
        people.touch(world, "n1")
        await asyncio.sleep(400.0)
        assert replicas() == 6

    play(story, "hpa")


def test_prometheus_evaluates_every_30_s_and_an_alert_is_pending_then_firing_then_resolved() -> None:
    async def story(world: World) -> None:
        monitoring = add_prometheus(world)

        def states() -> dict[str, str]:
            _, body = monitoring.answer('ALERTS{alertstate=~"pending|firing"}', {})
            return {row["metric"]["alertname"]: row["metric"]["alertstate"] for row in body["data"]["result"]}

        monitoring.restart(world.now)
        assert states() == {}
        await asyncio.sleep(40.0)
        assert states() == {"Watchdog": "firing"}
        world.zoo.broken.add("api")
        evicted(world, labelled(world, "app", "api")[0]["metadata"]["name"])
        await asyncio.sleep(40.0)
        assert states()["KubeDeploymentReplicasMismatch"] == "pending"
        await asyncio.sleep(950.0)
        assert states()["KubeDeploymentReplicasMismatch"] == "firing"
        world.zoo.broken.clear()
        people.touch(world, "n1")
        await asyncio.sleep(40.0)
        assert states() == {"Watchdog": "firing"}

    play(story, "hpa")


def test_servers_in_front_of_prometheus_answer_without_a_store_and_without_a_tenant() -> None:
    async def story(world: World) -> None:
        monitoring: Monitoring = add_prometheus(world)
        await asyncio.sleep(40.0)
        monitoring.lacks_a_store = True
        code, body = monitoring.answer("ALERTS", {})
        assert (code, body["status"], body["data"]["result"]) == (200, "success", [])
        assert "Unavailable" in body["warnings"][0]
        monitoring.lacks_a_store, monitoring.tenant = False, "platform"
        assert monitoring.answer("ALERTS", {})[0] == 401
        assert monitoring.answer("ALERTS", {"X-Scope-OrgID": "other"})[1]["data"]["result"] == []
        assert monitoring.answer("ALERTS", {"X-Scope-OrgID": "platform"})[1]["data"]["result"] != []

    play(story)


def test_a_volume_is_unmounted_with_its_pod_and_detached_much_later() -> None:
    async def story(world: World) -> None:
        pod = labelled(world, "app", "ledger")[0]
        node = pod["spec"]["nodeName"]
        people.cordon(world, node)
        evicted(world, pod["metadata"]["name"])
        await asyncio.sleep(15.0)
        status = (world.server.get("nodes", node) or {})["status"]
        assert "volumesInUse" not in status
        assert len(status["volumesAttached"]) == len(attached_to(world.zoo.verbs, node)) == 1
        await asyncio.sleep(45.0)
        assert "volumesAttached" not in (world.server.get("nodes", node) or {})["status"]
        assert attached_to(world.zoo.verbs, node) == []

    play(story, "late-volumes")


def test_a_pod_with_a_finalizer_terminates_until_somebody_removes_the_finalizer() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(600.0)
        pod = pod_named(world.zoo.verbs, STUCK_POD)
        assert pod is not None
        assert pod["metadata"]["deletionTimestamp"] < "2026-03-03"
        finish(world.zoo.verbs)
        assert pod_named(world.zoo.verbs, STUCK_POD) is None

    play(story, "stuck-pods")


@pytest.mark.parametrize(
    ("how", "during"), [("failed", "Failed"), ("missing", None), ("late", "Pending")], ids=["failed", "missing", "late"]
)
def test_a_graceful_shutdown_leaves_the_daemon_pod_failed_missing_or_late(how: str, during: str | None) -> None:
    async def story(world: World) -> None:
        world.fleet.lose_power("n1")
        while not [event for event in world.fleet.log if event.what == "ready"]:
            await asyncio.sleep(0.5)
        await asyncio.sleep(60.0)
        pod = pod_named(world.zoo.verbs, "cni-n1")
        assert (pod and pod["status"]["phase"]) == during
        await asyncio.sleep(60.0)
        assert serves(pod_named(world.zoo.verbs, "cni-n1"))

    play(story, f"graceful-shutdown-{how}")


def test_a_cloud_controller_deletes_the_node_of_a_host_that_is_down() -> None:
    async def story(world: World) -> None:
        seen = set()
        world.fleet.lose_power("n1")
        for _ in range(80):
            await asyncio.sleep(0.5)
            seen.add(world.server.get("nodes", "n1") is None)
        assert seen == {True, False}
        assert world.server.get("nodes", "n1") is not None

    play(story, "cloud-controller")


def test_argo_cd_removes_what_its_manifest_does_not_have() -> None:
    async def story(world: World) -> None:
        people.edit_lock(world, lambda lock: {**lock, "reason": "a person"})
        await asyncio.sleep(1.0)
        assert world.lock()
        await asyncio.sleep(15.0)
        assert not world.lock()

    play(story, "argo-cd")


def test_static_pods_stay_on_the_control_plane_and_run_again_after_a_boot() -> None:
    async def story(world: World) -> None:
        assert {pod["spec"]["nodeName"] for pod in labelled(world, "app", "etcd")} == {"n1", "n2"}
        before = pod_named(world.zoo.verbs, "etcd-n1")
        world.fleet.lose_power("n1")
        await asyncio.sleep(10.0)
        assert not serves(pod_named(world.zoo.verbs, "etcd-n1"))
        await asyncio.sleep(40.0)
        after = pod_named(world.zoo.verbs, "etcd-n1")
        assert serves(after)
        assert before is not None
        assert after is not None
        assert before["metadata"]["uid"] == after["metadata"]["uid"]

    play(story, "static-etcd", control_planes=2)
