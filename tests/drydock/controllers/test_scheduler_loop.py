"""Tests the scheduler loop of the embedded cluster: it binds every pod that may be bound."""

from __future__ import annotations

import asyncio
from typing import Any

from drydock.controllers.scheduler_loop import SchedulerLoop
from drydock.server.kinds.resources import resource_named
from tests.drydock.controllers.test_controllers import World

PODS = resource_named("pods")


def a_cluster(**of_pod: Any) -> World:
    world = World()
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    world.create("nodes", "n1", {})
    world.verbs.change(
        resource_named("nodes"),
        "",
        "n1",
        lambda old: {**old, "status": {**old["status"], "allocatable": room, "capacity": room}},
        actor="kubelet",
        subresource="status",
    )
    world.create("pods", "web", {"containers": [{"name": "main", "image": "web:1"}], **of_pod})
    return world


async def bound_after(world: World, *, decisions: int, loop: SchedulerLoop) -> str:
    """Run the loop for `decisions` cycles, or for 50 iterations of the event loop if `decisions` is 0. Return the node
    of the only pod, or an empty text.
    """
    running = asyncio.create_task(loop.run())
    try:
        for _ in range(50 if decisions == 0 else 100_000):
            await asyncio.sleep(0)
            if decisions and loop.decisions >= decisions:
                break
    finally:
        running.cancel()
    return str(world.pods()[0]["spec"].get("nodeName", ""))


async def test_the_scheduler_binds_a_pending_pod() -> None:
    world = a_cluster()
    assert await bound_after(world, decisions=1, loop=SchedulerLoop(world.verbs)) == "n1"


async def test_the_scheduler_binds_a_gated_pod_after_its_last_gate_is_removed() -> None:
    world = a_cluster(schedulingGates=[{"name": "quota"}])
    loop = SchedulerLoop(world.verbs)
    assert await bound_after(world, decisions=0, loop=loop) == ""
    assert loop.decisions == 0
    world.verbs.change(
        PODS, "shop", "web", lambda old: {**old, "spec": {**old["spec"], "schedulingGates": []}}, actor="admin"
    )
    assert await bound_after(world, decisions=1, loop=loop) == "n1"


def needing(cpu: str, **spec: Any) -> dict[str, Any]:
    requests = {"resources": {"requests": {"cpu": cpu}}}
    return {"containers": [{"name": "main", "image": "web:1", **requests}], **spec}


async def decided(world: World, *, decisions: int) -> dict[str, Any]:
    """The pods by name."""
    await bound_after(world, decisions=decisions, loop=SchedulerLoop(world.verbs))
    return {pod["metadata"]["name"]: pod for pod in world.pods()}


async def test_a_pod_that_fits_nowhere_is_told_why() -> None:
    world = a_cluster(**needing("9"))
    (condition,) = (await decided(world, decisions=1))["web"]["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu")


async def test_a_pod_of_higher_priority_gets_the_room_of_another() -> None:
    world = a_cluster(**needing("3"))
    await decided(world, decisions=1)
    world.create("pods", "urgent", needing("3", priorityClassName="system-cluster-critical"))
    pods = await decided(world, decisions=1)
    assert pods["urgent"]["status"]["nominatedNodeName"] == "n1"
    assert "deletionTimestamp" in pods["web"]["metadata"]
    assert "DisruptionTarget" in [condition["type"] for condition in pods["web"]["status"]["conditions"]]


async def test_a_volume_is_bound_to_the_claim_of_the_pod() -> None:
    world = a_cluster(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    room = {"storageClassName": "wait", "accessModes": ["ReadWriteOnce"]}
    storage = resource_named("storageclasses")
    late = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    world.verbs.create(storage, "", {"metadata": {"name": "wait"}, **late}, actor="admin")
    world.create("persistentvolumes", "v", {**room, "capacity": {"storage": "1Gi"}})
    volumes = resource_named("persistentvolumes")
    available = {"status": {"phase": "Available"}}
    world.verbs.change(volumes, "", "v", lambda old: {**old, **available}, actor="admin", subresource="status")
    world.create("persistentvolumeclaims", "data", {**room, "resources": {"requests": {"storage": "1Gi"}}})
    await decided(world, decisions=1)
    (bound,) = world.verbs.store.items(volumes.storage)
    assert bound.content["spec"]["claimRef"]["name"] == "data"
    assert world.pods()[0]["spec"].get("nodeName") is None
