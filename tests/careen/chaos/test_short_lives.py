"""Agents whose processes live only for seconds. The roll-out continues, because each new process reads its state from
the Node and the lock."""

from __future__ import annotations

import pytest

from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World


async def agents_that_die(shape: Shape, seed: int, lives_seconds: float) -> World:
    """Play a roll-out in which each agent process is killed at most `lives_seconds` after its start, as by a failing
    liveness probe or the memory limit."""
    world = World(shape, seed=seed)

    def watch(node: str) -> None:
        process = start(node)
        world.at(lives_seconds * world.chance.uniform(0.8, 1.0), lambda: world.agents.crash(process))
        return process

    start, world.agents.start = world.agents.start, watch
    world.fleet.on_up = watch
    for process in list(world.agents.processes):
        world.at(world.chance.uniform(0.0, lives_seconds), lambda process=process: world.agents.crash(process))
    await world.all_need_a_reboot()
    await world.until_home(shape.nodes * 300.0)
    world.stop()
    return world


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    "shape",
    [Shape(nodes=1), Shape(nodes=3), Shape(nodes=4, concurrency=2)],
    ids=["1 node", "3 nodes", "4 nodes, 2 at once"],
)
@pytest.mark.parametrize("seed", range(3))
def test_agents_killed_every_five_seconds_still_reboot_the_whole_fleet(shape: Shape, seed: int) -> None:
    world = run_virtually(agents_that_die(shape, seed, 5.0))
    assert world.verdict(but=("taint", "settled", "service")) == [], world.report([])
    assert sum(event.what == "booted" for event in world.fleet.log) == shape.nodes
