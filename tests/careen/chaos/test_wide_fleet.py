"""A hundred agents in one simulation: no rule breaks, and nodes that need no reboot send almost no requests. `make
wide` runs five hundred agents."""

from __future__ import annotations

import asyncio
from collections import Counter

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

NODES, ASKING = 100, 20
# When it starts, an idle agent reads its Node and the lock. Then it reads its Node every five minutes. That makes three
# requests in this roll-out of less than seven minutes; the limit allows some more.
IDLE_REQUESTS = 8


async def some_of_many() -> tuple[World, Counter[str]]:
    counted: Counter[str] = Counter()

    def plan(_number: int, node: str, _request: Request) -> Fault | None:
        counted[node] += 1
        return None

    world = World(Shape(nodes=NODES, zones=5, control_planes=3, concurrency=5), plan=plan)
    await asyncio.sleep(6.0)
    for name in world.shape.names[:ASKING]:
        world.fleet.hosts[name].needs_reboot()
    await world.until_home(900.0)
    world.stop()
    return world, counted


def test_twenty_of_a_hundred_nodes_reboot_and_the_idle_nodes_send_few_requests() -> None:
    world, counted = run_virtually(some_of_many())
    assert world.verdict() == [], world.report(world.verdict())
    booted = [event.host for event in world.fleet.log if event.what == "booted"]
    assert sorted(booted) == sorted(world.shape.names[:ASKING])
    assert max(counted[name] for name in world.shape.names[ASKING:]) <= IDLE_REQUESTS
