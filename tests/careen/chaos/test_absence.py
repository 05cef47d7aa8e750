"""After a reboot, a fleet goes on only when everything that was ready before is ready again. What is missing, failed or
replaced by something worse is not healthy."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from careen.core.facts.policy import SettlePolicy
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.foreign_pods import owner, put_pod
from tests.careen.chaos.fleet.machines import Host
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.workloads import NAMESPACE
from tests.careen.chaos.fleet.world import Shape, World

NEVER = (50_000.0, 50_001.0)
MIRROR = {"kubernetes.io/config.mirror": "abc"}


def booted(world: World) -> list[str]:
    return [event.host for event in world.fleet.log if event.what == "booted"]


def reason(world: World, node: str) -> str:
    found = world.server.get("nodes", node) or {"metadata": {}}
    return str(found["metadata"].get("annotations", {}).get("careen.dev/reason", ""))


async def put_etcd(world: World) -> None:
    for name in world.shape.names:
        put_pod(world, f"etcd-{name}", name, owner("Node", name), annotations=MIRROR)


@pytest.mark.parametrize("control_planes", [1, 3, 5])
@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_static_pod_that_does_not_come_back_halts_the_control_plane(control_planes: int, concurrency: int) -> None:
    async def story() -> None:
        world = World(Shape(nodes=control_planes, control_planes=control_planes, concurrency=concurrency))
        await put_etcd(world)
        world.fleet.workloads.node_back = lambda node: None  # type: ignore[method-assign]
        up = world.fleet._kubelet_up

        def kubelet_up(host: Host, boot: int) -> None:
            up(host, boot)
            world.fleet.workloads._pod_ready(f"etcd-{host.name}", is_ready=False)

        world.fleet._kubelet_up = kubelet_up  # type: ignore[method-assign]
        await world.all_need_a_reboot()
        await asyncio.sleep(600)
        first = booted(world)[0]
        assert booted(world) == [first]
        assert f"shop/etcd-{first}" in reason(world, first)
        world.stop()

    run_virtually(story())


def test_a_fleet_waits_for_a_failed_daemonset_pod_to_be_replaced() -> None:
    """As with the graceful shutdown of kubelets: the pod is Failed after the boot, its successor comes 90 s later."""

    async def story() -> None:
        world = World(Shape(nodes=2))
        workloads, up, ready_at = world.fleet.workloads, world.fleet._kubelet_up, {}

        def kubelet_up(host: Host, boot: int) -> None:
            failed = {"phase": "Failed", "conditions": [{"type": "Ready", "status": "False"}]}
            workloads._pod_status(f"net-{host.name}", failed)
            up(host, boot)

            def successor() -> None:
                world.server.remove("pods", f"net-{host.name}", actor="ds", namespace=NAMESPACE)
                workloads.place_daemons(host.name)
                ready_at[host.name] = world.now

            world.at(90, successor)

        world.fleet._kubelet_up = kubelet_up  # type: ignore[method-assign]
        world.fleet._daemons_up = lambda host, boot: None  # type: ignore[method-assign]
        await world.all_need_a_reboot()
        back: dict[str, float] = {}
        for _ in range(900):
            await asyncio.sleep(0.5)
            for name in booted(world):
                node = world.server.get("nodes", name) or {"spec": {}}
                if not node["spec"].get("unschedulable"):
                    back.setdefault(name, world.now)
        assert sorted(back) == ["n1", "n2"]
        assert all(back[name] >= ready_at[name] for name in back)
        world.stop()

    run_virtually(story())


@pytest.mark.parametrize("policy", list(SettlePolicy))
def test_an_autoscaler_does_not_hide_pods_that_do_not_become_ready(policy: SettlePolicy) -> None:
    async def story() -> None:
        world = World(Shape(nodes=3))
        people.change_settings(world, settle_policy=policy)
        apps = world.fleet.workloads.apps
        apps["web"] = replace(apps["web"], ready_within=NEVER)
        await world.all_need_a_reboot()
        while not booted(world):
            await asyncio.sleep(0.2)
        people_scale(world, 5)
        await asyncio.sleep(900)
        assert len(booted(world)) == (1 if policy is SettlePolicy.HALT else 3)
        if policy is SettlePolicy.HALT:
            assert "ReplicaSet shop/web (2 of 3 pods ready)" in reason(world, booted(world)[0])
        world.stop()

    run_virtually(story())


def people_scale(world: World, replicas: int) -> None:
    def scaled(old: dict[str, Any]) -> dict[str, Any]:
        metadata = {**old["metadata"], "generation": old["metadata"]["generation"] + 1}
        return {**old, "spec": {**old["spec"], "replicas": replicas}, "metadata": metadata}

    world.server.change("replicasets", "web", scaled, actor="hpa", namespace=NAMESPACE)


@pytest.mark.parametrize("kind", ["StrimziPodSet", "Cluster", "CloneSet"])
@pytest.mark.parametrize("ready", [True, False])
def test_the_pods_of_an_operator_must_be_ready_again(kind: str, ready: bool) -> None:
    async def story() -> None:
        world = World(Shape(nodes=3))
        for name in world.shape.names:
            put_pod(world, f"db-{name}", name, owner(kind, "store"))

        async def operator() -> None:
            while True:
                await asyncio.sleep(1)
                for name in world.shape.names:
                    free = list(world.fleet.workloads._places())
                    if world.server.get("pods", f"db-{name}", NAMESPACE) is None and free:
                        put_pod(world, f"db-{name}", free[0], owner(kind, "store"), is_ready=ready)

        task = asyncio.ensure_future(operator())
        await world.all_need_a_reboot()
        await asyncio.sleep(900)
        assert len(booted(world)) == (3 if ready else 1)
        if not ready:
            assert f"{kind} shop/store (2 of 3 pods ready)" in reason(world, booted(world)[0])
        task.cancel()
        world.stop()

    run_virtually(story())


def test_volumes_that_detach_late_are_awaited() -> None:
    async def story() -> None:
        world = World(Shape(nodes=2))

        def hold(name: str, volumes: list[str]) -> None:
            def held(old: dict[str, Any]) -> dict[str, Any]:
                return {**old, "status": {**old["status"], "volumesInUse": volumes}}

            world.server.change("nodes", name, held, actor="kubelet", subresource="status")

        for name in world.shape.names:
            hold(name, ["csi^pv"])
        await world.all_need_a_reboot()
        while not any("waits until its volumes are detached" in reason(world, n) for n in world.shape.names):
            await asyncio.sleep(0.5)
        assert not any(event.what == "asked" for event in world.fleet.log)
        detached = world.now
        for name in world.shape.names:
            hold(name, [])
        await asyncio.sleep(200)
        assert sorted(booted(world)) == sorted(world.shape.names)
        assert min(event.at for event in world.fleet.log if event.what == "asked") >= detached
        world.stop()

    run_virtually(story())


def test_a_pod_that_never_ends_leaves_its_node_in_service() -> None:
    async def story() -> None:
        world = World(Shape(nodes=2))
        ends = {"deletionTimestamp": "2026-03-02T12:00:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["x/y"]}
        put_pod(world, "stuck", "n1", owner("CloneSet", "store"), **ends)
        await world.all_need_a_reboot()
        await asyncio.sleep(300)
        assert booted(world) == ["n2"]
        assert not (world.server.get("nodes", "n1") or {})["spec"].get("unschedulable")
        assert "shop/stuck (terminating since 2026-03-02T12:00:00Z; finalizer x/y)" in reason(world, "n1")
        world.stop()

    run_virtually(story())
