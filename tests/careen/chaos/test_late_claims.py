"""The write of a claim into the lock takes effect long after the agent stopped waiting for the response. Meanwhile the
node no longer needs a reboot."""

from __future__ import annotations

import asyncio

import pytest

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World


def takes_a_claim(request: Request) -> bool:
    return (
        request.method == "PATCH"
        and request.path.endswith("/daemonsets/careen")
        and b"nodeID" in (request.body or b"").split(b"locks", 1)[-1]
    )


async def late_claim(late_seconds: float, *, dies: bool, goes_on: bool = False) -> World:
    """Play a roll-out in which the server carries out the write of a claim `late_seconds` after the agent sent it.
    Meanwhile the node no longer needs a reboot, so no agent writes the lock again. If `dies` is true, the agent dies
    after sending.

    If `goes_on` is true, the function returns about 10 s after the late write, and the agents still run. Otherwise the
    function waits for about 120 s after the late write and stops the simulation."""
    held: list[tuple[str, Request]] = []

    def plan(_number: int, node: str, request: Request) -> Fault | None:
        if held or not takes_a_claim(request):
            return None
        held.append((node, request))
        world.at(0.01, lambda: setattr(world.fleet.hosts[node], "has_need", False))
        world.at(late_seconds, lambda: world.agents.land(node, request))
        return Fault.DIE_BEFORE if dies else Fault.LOST_BEFORE

    world = World(Shape(nodes=1), plan=plan)
    await world.all_need_a_reboot()
    await asyncio.sleep(late_seconds + (10.0 if goes_on else 120.0))
    if not goes_on:
        world.stop()
    assert held, "no agent wrote a claim"
    return world


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("late_seconds", [0.3, 1.0, 5.0, 20.0, 55.0])
def test_a_claim_written_late_for_an_idle_node_is_removed(late_seconds: float, dies: bool) -> None:
    """No other node waits, so no other agent checks whether the claim is still in use."""
    world = run_virtually(late_claim(late_seconds, dies=dies))
    assert world.lock().get("locks", []) == []
    assert [event.what for event in world.fleet.log] == ["need"]


async def late_claim_then_the_need_again(late_seconds: float) -> World:
    """Play a roll-out in which the server carries out the write of a claim late, and the agent that sent this write
    dies. Afterwards the host needs a reboot again."""
    world = await late_claim(late_seconds, dies=True, goes_on=True)
    world.fleet.hosts["n1"].needs_reboot()
    await world.until_home(300.0)
    world.stop()
    return world


@pytest.mark.parametrize("late_seconds", [1.0, 20.0])
def test_a_late_write_of_an_earlier_claim_does_not_prevent_a_later_reboot(late_seconds: float) -> None:
    world = run_virtually(late_claim_then_the_need_again(late_seconds))
    assert world.verdict(but=("once", "finished")) == []
    assert [event.what for event in world.fleet.log if event.what in ("need", "asked")] == ["need", "need", "asked"]
