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
    assert await bound_after(world, decisions=1, loop=SchedulerLoop(world.verbs, seed=1)) == "n1"


async def test_the_scheduler_binds_a_gated_pod_after_its_last_gate_is_removed() -> None:
    world = a_cluster(schedulingGates=[{"name": "quota"}])
    loop = SchedulerLoop(world.verbs, seed=1)
    assert await bound_after(world, decisions=0, loop=loop) == ""
    assert loop.decisions == 0
    world.verbs.change(
        PODS, "shop", "web", lambda old: {**old, "spec": {**old["spec"], "schedulingGates": []}}, actor="admin"
    )
    assert await bound_after(world, decisions=1, loop=loop) == "n1"
