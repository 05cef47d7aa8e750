"""Somebody restores etcd from a backup in the middle of a roll-out, without pausing it first: the Nodes and the lock
are as they were, and the resourceVersions go back, while the hosts go on. The agents pause the lock, no second host
goes down, and `careen lock resume` lets the roll-out finish."""

from __future__ import annotations

import asyncio
import random

import pytest

from drydock.server.kinds.resources import resource_named
from drydock.server.store import Backup
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

FIVE = Shape(nodes=5)
SEEDS = (0, 2, 3, 4)
EVERYBODY_NOTICES_SECONDS = 360.0
"""The agent of an idle node reads its Node every five minutes."""
LONG = {"reboot_deadline_seconds": 900.0, "verify_timeout_seconds": 900.0, "settle_timeout_seconds": 900.0}


async def _restored(seed: int) -> World:
    """The backup is older than the claim of the host that is down when it is restored, and the host takes long to come
    back."""
    chance = random.Random(seed)
    world = World(FIVE, seed=seed)
    world.fleet.slowness = 8.0
    for name in FIVE.names:
        world.settings[name] = LONG
    await world.all_need_a_reboot()
    await asyncio.sleep(
        chance.uniform(0.0, 60.0) if seed % 4 == 3 else chance.uniform(0.5, 3.0)
    )  # with, without a claim
    backup = world.server.store.backup()
    holders = holders_of(world)
    while not (down := down_now(world)) or down <= holders:
        await asyncio.sleep(0.5)
    await asyncio.sleep(chance.uniform(7.0, 12.0))
    restore(world, backup)
    await asyncio.sleep(EVERYBODY_NOTICES_SECONDS)
    world.booted.append("paused" if world.lock().get("nodeID") == "manual" else "not paused")
    people.resume(world, "")
    await world.until_home(3000.0)
    world.stop()
    return world


def holders_of(world: World) -> set[str]:
    """Return the nodes that hold a claim."""
    return {str(entry["nodeID"]) for entry in world.lock().get("locks") or []}


def down_now(world: World) -> set[str]:
    return {name for name, host in world.fleet.hosts.items() if not host.is_up}


def restore(world: World, backup: Backup) -> None:
    """Restore the Nodes and the DaemonSets. Pods stay: the simulated controllers would have to find them again. The API
    servers start again, so every watch ends. Then each kubelet reports; the node controller notices after 40 s that a
    host is down whose Node says Ready again."""
    world.note("etcd is restored from a backup")
    world.server.store.restore(backup, [resource_named(plural).storage for plural in ("nodes", "daemonsets")])
    world.agents.break_connections()
    for name, host in world.fleet.hosts.items():
        seconds = world.chance.uniform(1.0, 10.0) if host.is_up else 40.0
        world.at(seconds, lambda name=name: world.fleet.report(name, ready=world.fleet.hosts[name].is_up))


def most_down(world: World) -> int:
    """Return how many hosts were down at once."""
    down: set[str] = set()
    most = 0
    for event in world.fleet.log:
        if event.what in ("asked", "down", "lost"):
            down.add(event.host)
        if event.what == "ready":
            down.discard(event.host)
        most = max(most, len(down))
    return most


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_restore_no_second_host_goes_down_and_one_command_resumes_the_roll_out(seed: int) -> None:
    world = run_virtually(_restored(seed))
    assert most_down(world) == 1, world.report([])
    assert not [each for each in world.verdict() if each.startswith("nodes-down")], world.report([])
    assert world.booted == ["paused"], world.report([])
    assert world.home_at is not None, world.report([])
