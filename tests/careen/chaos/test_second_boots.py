"""A host boots a second time by itself, because of firmware, a failing driver or a second update step."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

NODES = 3


async def boots_twice(after_seconds: float) -> tuple[World, list[str]]:
    """Let the first rebooted host lose its power `after_seconds` after its boot. Return the simulated cluster, and the
    claims and cordons of other nodes that were seen while this host was down again."""
    world, beside = World(Shape(nodes=NODES)), []
    await world.all_need_a_reboot()
    while not (booted := [event.host for event in world.fleet.log if event.what == "booted"]):
        await asyncio.sleep(0.05)
    first = booted[0]
    await asyncio.sleep(max(0.0, after_seconds - world.fleet.hosts[first].uptime()))
    world.fleet.lose_power(first)
    while not is_back(world, first):
        beside += at_work_besides(world, first)
        await asyncio.sleep(0.05)
    await world.until_home(900.0)
    world.stop()
    return world, beside


def is_back(world: World, name: str) -> bool:
    node = world.server.get("nodes", name)
    assert node is not None
    host = world.fleet.hosts[name]
    return host.is_up and node["status"]["nodeInfo"]["bootID"] == host.boot_id and is_ready(node)


def is_ready(node: Mapping[str, Any]) -> bool:
    return bool(node["status"]["conditions"][0]["status"] == "True")


def at_work_besides(world: World, name: str) -> list[str]:
    claims = [row["nodeID"] for row in world.lock().get("locks", []) if row["nodeID"] != name]
    nodes = world.server.all("nodes")
    cordons = [
        node["metadata"]["name"]
        for node in nodes
        if node["spec"].get("unschedulable") and node["metadata"]["name"] != name
    ]
    return [*(f"claim of {each}" for each in claims), *(f"cordon of {each}" for each in cordons)]


@pytest.mark.parametrize("after_seconds", [1.0, 8.0, 14.0, 20.0, 29.0])
def test_no_other_node_is_down_during_a_hosts_second_reboot(after_seconds: float) -> None:
    world, beside = run_virtually(boots_twice(after_seconds))
    assert beside == [], world.report(beside)
    broken = world.verdict(but=("once", "reported"))
    assert broken == [], world.report(broken)
    assert all(not host.has_need for host in world.fleet.hosts.values())
