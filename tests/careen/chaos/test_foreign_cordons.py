"""Roll-outs in a fleet in which a person has cordoned one node. The settings decide which nodes reboot."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World


async def beside_a_cordoned_node(**settings: Any) -> World:
    world = World(Shape(nodes=3))
    people.change_settings(world, **settings)
    people.cordon(world, "n2")
    await world.all_need_a_reboot()
    await asyncio.sleep(400.0)
    world.stop()
    return world


def rebooted(world: World) -> list[str]:
    return [event.host for event in world.fleet.log if event.what == "booted"]


def is_cordoned(world: World, name: str) -> bool:
    return bool((world.server.get("nodes", name) or {})["spec"].get("unschedulable"))


def reason(world: World, name: str) -> str:
    return str((world.server.get("nodes", name) or {})["metadata"]["annotations"]["careen.dev/reason"])


def test_by_default_a_node_that_a_person_cordoned_reboots_and_the_other_nodes_wait() -> None:
    world = run_virtually(beside_a_cordoned_node())
    assert (rebooted(world), is_cordoned(world, "n2")) == (["n2"], True)
    assert "n2 is cordoned by somebody, not by careen" in reason(world, "n1") + reason(world, "n3")


def test_every_node_reboots_if_nodes_cordoned_by_people_do_not_count_as_down() -> None:
    world = run_virtually(beside_a_cordoned_node(count_cordoned=False))
    assert (sorted(rebooted(world)), is_cordoned(world, "n2")) == (["n1", "n2", "n3"], True)
    assert [world.broken, world.agents.broken_turns()] == [[], []]


def test_every_node_except_the_cordoned_node_reboots_if_the_settings_protect_cordoned_nodes() -> None:
    world = run_virtually(beside_a_cordoned_node(count_cordoned=False, reboot_cordoned=False))
    assert sorted(rebooted(world)) == ["n1", "n3"]
    assert "the node is cordoned by" in reason(world, "n2")
