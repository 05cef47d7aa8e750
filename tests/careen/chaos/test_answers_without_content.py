"""A proxy between the agents and the API server returns status 200 without content, for single requests and for whole
periods.

Agents must draw no conclusion from such a response. For example, `{}` does not mean that a Node has no pods, no foreign
taints and no claim."""

from __future__ import annotations

import asyncio
import random

import pytest

from careen.cluster.wire.transport import Request
from careen.core.facts.policy import Budget, BudgetKind
from tests.careen.chaos.fleet.agents import WITHOUT_CONTENT, WITHOUT_CONTENT_AFTER, Fault, can_meet
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

SHAPES = (
    Shape(nodes=1),
    Shape(nodes=2),
    Shape(nodes=3, concurrency=2, replicas_per_node=2),
    Shape(nodes=4, zones=2, concurrency=2, zone_limit=1, budgets=(Budget(kind=BudgetKind.ZONE, limit=1),)),
)
STORM_SECONDS = 400.0
FAULTS = (*WITHOUT_CONTENT, *WITHOUT_CONTENT_AFTER, Fault.CUT_SHORT)
FOREIGN = {"key": "example.com/gpu", "value": "broken", "effect": "NoExecute"}


async def storm(fault: Fault, seed: int) -> World:
    """Play a roll-out in which on average every twentieth response has no content. In each of three periods of up to a
    minute, all responses to one agent or to all agents have no content."""
    chance = random.Random(seed)
    shape = SHAPES[seed % len(SHAPES)]
    spells = [
        (begin, begin + chance.uniform(2.0, 60.0), chance.choice((*shape.names, "")))
        for begin in (chance.uniform(0.0, 200.0) for _ in range(3))
    ]
    is_calm = False

    def plan(_number: int, node: str, request: Request) -> Fault | None:
        if is_calm or not can_meet(request, fault):
            return None
        is_in_spell = any(begin <= world.now < end and each in ("", node) for begin, end, each in spells)
        return fault if is_in_spell or chance.random() < 0.05 else None

    world = World(shape, plan=plan, seed=seed)
    for name in shape.names:
        world.server.change(
            "nodes", name, lambda old: {**old, "spec": {**old.get("spec", {}), "taints": [FOREIGN]}}, actor="person"
        )
        world.at(chance.uniform(3.0, 60.0), world.fleet.hosts[name].needs_reboot)
    world.initial = {node["metadata"]["name"]: node for node in world.server.all("nodes")}
    await asyncio.sleep(STORM_SECONDS)
    is_calm = True
    await world.until_home(900.0)
    world.stop()
    return world


def unguarded(world: World) -> list[str]:
    """Return the lines of the trace that show a patch with an empty resourceVersion. The server would carry out such a
    patch even if the object has changed since the agent read it."""
    return [line for line in world.agents.trace if ": PATCH " in line and '"resourceVersion":""' in line]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.lower())
def test_empty_responses_break_no_rule(fault: Fault, seed: int) -> None:
    world = run_virtually(storm(fault, seed))
    # A period without content lasts up to a minute. In this time, an agent may be unable to set the soft taint.
    broken = world.verdict(but=("taint",))
    broken += [f"a patch has an empty resourceVersion: {line[:200]}" for line in unguarded(world)]
    assert not broken, world.report(broken)
