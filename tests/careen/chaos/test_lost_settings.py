"""The ConfigMap with careen's settings is deleted or corrupted while nodes wait until the maintenance window opens. The
agents keep the last valid settings, so the window stays closed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from careen.settings.live import Invocation, LiveSettings, SeenConfigMap
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

CLOSED = SeenConfigMap(uid="first", resource_version="1", data={"config.yaml": 'reboot-days: ""\nconcurrency: 1\n'})
EMPTY = SeenConfigMap(uid="second", resource_version="9", data={})
SPOILT = SeenConfigMap(uid="first", resource_version="2", data={"config.yaml": "reboot-days: sometimes\n"})


def settings_of(world: World) -> Mapping[str, LiveSettings]:
    """Return settings with a closed maintenance window for each node's agent."""
    return {
        name: LiveSettings(
            Invocation(flags={"node_id": (name,)}, environment={}), CLOSED, config_map_name="careen/careen"
        )
        for name in world.shape.names
    }


async def tell(world: World, agents: Mapping[str, LiveSettings], seen: SeenConfigMap | None) -> None:
    """Pass the ConfigMap to every agent within two seconds, each after its own delay."""
    for name in world.chance.sample(list(agents), len(agents)):
        await asyncio.sleep(world.chance.uniform(0.0, 2.0 / len(agents)))
        agents[name].offer(seen)
        world.settings[name] = {"window": agents[name].policy.window}


async def behind_a_closed_window(seed: int, lost: SeenConfigMap | None, *, crashes: bool) -> World:
    world = World(Shape(nodes=3), seed=seed)
    agents = settings_of(world)
    for name, live in agents.items():
        world.settings[name] = {"window": live.policy.window}
    await world.all_need_a_reboot()
    await asyncio.sleep(world.chance.uniform(0.0, 30.0))
    await tell(world, agents, lost)
    if crashes:
        world.agents.crash(next(process for process in world.agents.processes if process.node == "n2"))
    await asyncio.sleep(120.0)
    world.booted = [event.host for event in world.fleet.log if event.what == "booted"]
    await tell(world, agents, EMPTY)
    await world.until_home(900.0)
    world.stop()
    return world


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lost", [None, SPOILT], ids=["deleted", "corrupted"])
@pytest.mark.parametrize("crashes", [False, True], ids=["no agent dies", "an agent dies"])
def test_the_maintenance_window_stays_closed_if_the_config_map_is_deleted_or_corrupted(
    seed: int, lost: SeenConfigMap | None, crashes: bool
) -> None:
    world = run_virtually(behind_a_closed_window(seed, lost, crashes=crashes))
    assert world.booted == [], world.report([])
    broken = world.verdict()
    assert not broken, world.report(broken)
