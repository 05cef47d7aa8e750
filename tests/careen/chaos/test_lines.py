"""The lock contains a list of nodes that wait for their reboot (the line). Nodes that no longer need a reboot are
removed from this list."""

from __future__ import annotations

import asyncio

import pytest

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World


def names(world: World) -> list[str]:
    return list(world.lock().get("next") or ())


async def named_and_then_not_needed(fault: Fault | None, *, is_deleted: bool = False) -> World:
    """Let three nodes wait in the lock's line while another node has the claim. Then n1 and n2 no longer need a reboot.
    With a `fault`, the agents' writes of the lock fail for eight seconds. If `is_deleted` is true, n3 is deleted as
    well."""
    is_bad = False

    def plan(_number: int, _node: str, request: Request) -> Fault | None:
        return fault if is_bad and request.path.endswith("/daemonsets/careen") and request.method != "GET" else None

    world = World(Shape(nodes=3), plan=plan)
    people.edit_lock(world, lambda _: {"nodeID": "elsewhere", "created": "2026-03-04T12:00:00Z"})
    await world.all_need_a_reboot()
    while len(names(world)) < 3:
        await asyncio.sleep(0.5)
    is_bad = fault is not None
    for name in ("n1", "n2"):
        world.fleet.hosts[name].has_need = False
    if is_deleted:
        world.agents.kill("n3")
        world.fleet.hosts["n3"].has_need = False
        world.server.remove("nodes", "n3", actor="person")
    await asyncio.sleep(8.0)
    is_bad = False
    await asyncio.sleep(60.0 if not is_deleted else 900.0)
    world.stop()
    return world


@pytest.mark.parametrize("fault", [Fault.CONFLICT, Fault.DIE_BEFORE, Fault.LOST_BEFORE, Fault.FORBIDDEN], ids=str)
def test_a_node_that_needs_no_reboot_leaves_the_line_even_if_writes_fail_at_first(fault: Fault) -> None:
    world = run_virtually(named_and_then_not_needed(fault))
    assert names(world) == ["n3"], world.report([])


def test_a_deleted_node_is_removed_from_the_line_even_if_no_other_node_waits() -> None:
    world = run_virtually(named_and_then_not_needed(None, is_deleted=True))
    assert names(world) == [], world.report([])
