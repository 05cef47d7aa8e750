"""A slow webhook delays each eviction. Holds (annotations by which a person keeps a node from rebooting) and pauses of
the roll-out take effect between two evictions."""

from __future__ import annotations

import asyncio

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World


def slow_webhook(_number: int, _node: str, request: Request) -> Fault | None:
    """Return the fault that delays each eviction by twelve seconds, but not its dry run."""
    return Fault.SLOW if request.path.endswith("/eviction") and "dryRun" not in request.query else None


def is_cordoned(world: World) -> bool:
    return bool((world.server.get("nodes", "n1") or {}).get("spec", {}).get("unschedulable"))


def test_a_hold_takes_effect_within_seconds_despite_twenty_slow_evictions() -> None:
    async def story() -> tuple[World, float]:
        world = World(Shape(nodes=1, replicas_per_node=10), plan=slow_webhook)
        await world.all_need_a_reboot()
        while not is_cordoned(world):
            await asyncio.sleep(0.25)
        await asyncio.sleep(20.0)
        people.hold(world, "n1")
        held_at = world.now
        while is_cordoned(world):
            await asyncio.sleep(0.25)
        took = world.now - held_at
        people.let_go(world, "n1")
        await world.until_home(900.0)
        world.stop()
        return world, took

    world, took = run_virtually(story())
    assert took < 15.0, world.report([f"the hold took effect after {took:.0f} s"])
    assert not (broken := world.verdict(but=("settled", "service"))), world.report(broken)
