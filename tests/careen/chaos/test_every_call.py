"""For every request of a whole roll-out: it is lost, late, refused, or its sender dies. Every rule holds, and
everybody comes home.

A plain run tries a share of the requests, other ones for each shape and fault; `make soak EVERY=1` tries every pair.
"""

from __future__ import annotations

import functools
import os
import zlib

import pytest

from careen.cluster.wire.transport import Request
from careen.core.facts.policy import Budget, BudgetKind
from tests.careen.chaos.fleet.agents import Fault, Plan, can_meet
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World, nothing_goes_wrong

SHAPES = {
    "one alone": Shape(nodes=1),
    "one after another": Shape(nodes=2),
    "two at once of three": Shape(nodes=3, concurrency=2, replicas_per_node=2),
    "two zones, one each": Shape(
        nodes=4, zones=2, concurrency=2, zone_limit=1, budgets=(Budget(kind=BudgetKind.ZONE, limit=1),)
    ),
    "a control plane of three": Shape(nodes=3, control_planes=3, concurrency=3),
}
EVERY = int(os.environ.get("CHAOS_EVERY", "269"))
"""Each so many-th pair of request and fault is tried."""


async def roll_out(shape: Shape, plan: Plan = nothing_goes_wrong) -> World:
    world = World(shape, plan=plan)
    await world.all_need_a_reboot()
    await world.until_home(900.0)
    world.stop()
    return world


@functools.cache
def requests_of(shape: Shape) -> tuple[Request, ...]:
    """What is asked of the server when nothing goes wrong; up to the fault, the same is asked again."""
    asked: list[Request] = []
    run_virtually(roll_out(shape, lambda _number, _node, request: asked.append(request)))
    return tuple(asked)


def one_fault(number: int, fault: Fault) -> Plan:
    return lambda at, _node, request: fault if at == number and can_meet(request, fault) else None


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_without_faults_everybody_reboots_once_and_every_rule_holds(shape: Shape) -> None:
    world = run_virtually(roll_out(shape))
    assert not (broken := world.verdict()), world.told(broken)
    assert world.now < 300


@pytest.mark.timeout(0)
@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_whatever_befalls_any_request_no_rule_breaks_and_everybody_comes_home(shape: Shape, fault: Fault) -> None:
    """From the first read to the last write: between any two requests there is no state that leads nowhere."""
    begin = zlib.crc32(f"{fault} {shape}".encode()) % EVERY
    for number, request in enumerate(requests_of(shape), start=1):
        if (number + begin) % EVERY == 0 and can_meet(request, fault):
            world = run_virtually(roll_out(shape, one_fault(number, fault)))
            broken = world.verdict(taint_seconds=75.0)  # the API server may be down for a minute of it
            assert not broken, f"request {number}: {world.told(broken)}"
