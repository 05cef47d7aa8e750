"""Nodes that hold a claim and are stuck. The reason on each waiting node contains the name of the stuck node, another
agent removes the claim of a deleted node, and a recreated node releases its own claim."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import START
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World


def reason(world: World, name: str) -> str:
    node = world.server.get("nodes", name) or {}
    return str((node["metadata"].get("annotations") or {}).get("careen.dev/reason", ""))


def series(world: World, name: str) -> list[str]:
    text = world.agents._metrics[name].exposition().decode()
    return [line for line in text.splitlines() if line.startswith("careen_overdue_holder_timestamp_seconds{")]


async def until(world: World, is_so: Callable[[], object], longest_seconds: float) -> float:
    """Wait until `is_so` returns true, and return how many seconds this took. Fails after `longest_seconds`."""
    began = world.now
    while not is_so():
        assert world.now - began < longest_seconds, world.report(
            [f"the condition is not met after {longest_seconds} s"]
        )
        await asyncio.sleep(0.05)
    return world.now - began


async def a_reboot_that_never_happens(shape: Shape) -> World:
    """Play a roll-out in which one host accepts the reboot request and does nothing, and its agent is killed. Later the
    host does reboot."""
    world = World(shape)
    for host in world.fleet.hosts.values():
        host.behaviour = "silent"
    await world.all_need_a_reboot()
    await until(world, lambda: world.fleet.log[-1].what == "ignored", 200.0)
    stuck = world.fleet.log[-1].host
    asked_at = (START.timestamp() + world.fleet.log[-1].at) // 1
    for host in world.fleet.hosts.values():
        host.behaviour = "works" if host.name != stuck else "silent"
    for name in {event.host for event in world.fleet.log if event.what == "ignored"} - {stuck}:
        world.fleet.begin_reboot(world.fleet.hosts[name])  # asked in the same moment
    world.agents.kill(stuck)
    others = [name for name in shape.names if name != stuck]

    def waiting() -> list[str]:
        return [name for name in others if world.fleet.hosts[name].has_need]

    if shape.concurrency == 1:
        # The limit of 120 s is enough for three times one after another: a third of the reboot deadline (40 s) until
        # the claim is overdue, up to 30 s until the first node in line checks the claim, and up to 38 s until the other
        # nodes read the lock again.
        took = await until(
            world,
            lambda: all(
                f"waits for overdue nodes: {stuck} was asked to reboot at" in reason(world, name) for name in others
            ),
            120.0,
        )
        assert took >= 30.0
        for name in others:
            (line,) = series(world, name)
            assert line.startswith(f'careen_overdue_holder_timestamp_seconds{{holder="{stuck}",node="{name}"}}')
            assert abs(float(line.split()[-1]) - asked_at) <= 2.0
    else:
        marked = await until(world, lambda: any("overdue" in row for row in world.lock().get("locks", ())), 120.0)
        assert marked >= 30.0
    world.fleet.begin_reboot(world.fleet.hosts[stuck])
    await until(world, lambda: all(stuck not in reason(world, name) for name in waiting()), 90.0)
    await world.until_home(900.0)
    assert [series(world, name) for name in shape.names] == [[]] * shape.nodes
    world.stop()
    return world


@pytest.mark.parametrize(
    "shape", [Shape(nodes=4), Shape(nodes=6, concurrency=2)], ids=["one at a time", "two at a time"]
)
def test_every_waiting_node_shows_which_host_did_not_reboot(shape: Shape) -> None:
    world = run_virtually(a_reboot_that_never_happens(shape))
    assert world.verdict() == [], world.report([])


def rows(world: World) -> list[dict[str, Any]]:
    return list(world.lock().get("locks") or ())


async def a_node_deleted_with_its_agent() -> World:
    """Play a roll-out in which a draining node is removed with its machine, as by an autoscaler. The other agents are
    killed every six seconds."""
    world = World(Shape(nodes=3))
    await world.all_need_a_reboot()
    await until(world, lambda: rows(world), 60.0)
    gone = rows(world)[0]["nodeID"]
    world.agents.kill(gone)
    world.fleet.hosts[gone].has_need = False
    people.delete_node(world, gone)
    world.at(0.1, lambda: setattr(world.fleet.hosts[gone], "is_up", False))
    world.note(f"{gone} is deleted")

    def die() -> None:
        for process in list(world.agents.processes):
            world.agents.crash(process)

    for second in range(5, 600, 6):
        world.at(float(second), die)
    took = await until(world, lambda: gone not in json.dumps(world.lock().get("locks") or []), 400.0)
    assert took > 110.0, "the claim was removed before the reboot deadline"
    world.stop()
    return world


def test_short_lived_agents_remove_the_claim_of_a_deleted_node() -> None:
    world = run_virtually(a_node_deleted_with_its_agent())
    assert world.agents.broken_turns() == []


async def a_recreated_node(in_phase: str, *, is_asked: bool = False) -> World:
    """Play a roll-out in which a Node is deleted when it enters the phase `in_phase`, and registered again a second
    later. The node's host and agent continue to run."""
    world = World(Shape(nodes=3))
    if is_asked:
        for host in world.fleet.hosts.values():
            host.behaviour = "silent"
    await world.all_need_a_reboot()

    def at_work() -> list[str]:
        nodes = {
            node["metadata"]["name"]: node["metadata"].get("annotations") or {} for node in world.server.all("nodes")
        }
        return [name for name, annotations in nodes.items() if annotations.get("careen.dev/phase") == in_phase]

    await until(world, at_work, 60.0)
    if is_asked:
        await until(world, lambda: world.fleet.log[-1].what == "ignored", 60.0)
    (name,) = at_work()
    await until(world, lambda: rows(world), 10.0)
    claim = rows(world)[0]["id"]
    for host in world.fleet.hosts.values():
        host.behaviour = "works"
    world.server.remove("nodes", name, actor="person")
    world.at(1.0, lambda: world.fleet.register(name))
    world.note(f"{name} is recreated")
    took = await until(world, lambda: claim not in json.dumps(rows(world)), 200.0)
    assert took > 110.0 if is_asked else took < 15.0, f"the claim was released after {took:.0f} s"
    await world.until_home(600.0)
    world.stop()
    return world


@pytest.mark.parametrize("phase", ["Claiming", "Draining"])
def test_a_recreated_node_without_a_reboot_request_releases_its_claim_at_once(
    phase: str,
) -> None:
    world = run_virtually(a_recreated_node(phase))
    assert [
        each
        for each in world.verdict(
            but=("drained", "claims", "claim", "finished", "settled", "service", "tidy", "own-node")
        )
        if "end:" not in each
    ] == [], world.report([])


def test_a_recreated_node_whose_reboot_was_requested_keeps_its_claim() -> None:
    run_virtually(a_recreated_node("Rebooting", is_asked=True))
