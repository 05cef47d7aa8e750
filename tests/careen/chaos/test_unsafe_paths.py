"""Cases in which other reboot coordinators behaved unsafely, and in which careen is safe. This file contains the cases
that need a whole roll-out. `docs/safety.md` lists all cases."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from careen.cluster.wire.transport import Request
from careen.core.facts.policy import DrainPolicy
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import Fault, slow_evictions
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

UNREADABLE_SECONDS = 300.0


def settings(world: World, **changes: Any) -> None:
    for name in world.shape.names:
        world.settings[name] = changes


def node(world: World, name: str) -> Mapping[str, Any]:
    found = world.server.get("nodes", name)
    assert found is not None
    return found


def is_cordoned(world: World, name: str) -> bool:
    return bool(node(world, name)["spec"].get("unschedulable"))


def holders(world: World) -> list[str]:
    return [row["nodeID"] for row in world.lock().get("locks", [])]


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.05)


async def the_lock_is_unreadable_after_the_boot() -> World:
    """Play a roll-out in which every read of the lock fails for five minutes after the first host goes down."""
    unreadable_until = 0.0

    def plan(_number: int, _node: str, request: Request) -> Fault | None:
        is_lock = request.method == "GET" and request.path.endswith("/daemonsets/careen")
        return Fault.FAILED if is_lock and world.now < unreadable_until else None

    world = World(Shape(nodes=2), plan=plan)
    await world.all_need_a_reboot()
    await until(lambda: any(event.what == "down" for event in world.fleet.log))
    first, unreadable_until = world.fleet.log[-1].host, world.now + UNREADABLE_SECONDS
    await until(lambda: not is_cordoned(world, first) and world.fleet.hosts[first].boot == 2)
    world.booted.append(f"{first} returned to service; the lock was still unreadable: {world.now < unreadable_until}")
    await world.until_home(900.0)
    world.stop()
    return world


def test_a_rebooted_node_returns_to_service_even_if_the_lock_is_unreadable() -> None:
    world = run_virtually(the_lock_is_unreadable_after_the_boot())
    assert world.booted[0].endswith("the lock was still unreadable: True")
    assert world.verdict() == [], world.report(world.verdict())


async def a_claim_older_than_its_ttl() -> World:
    """Play a roll-out in which every drain takes longer than `--lock-ttl`."""
    world = World(Shape(nodes=3))
    settings(world, lock_ttl_seconds=2.0)
    world.agents.latency = slow_evictions
    await world.all_need_a_reboot()
    await world.until_home(1200.0)
    world.stop()
    return world


def test_a_node_keeps_its_claim_if_its_drain_takes_longer_than_the_lock_ttl() -> None:
    world = run_virtually(a_claim_older_than_its_ttl())
    assert world.verdict() == [], world.report(world.verdict())


async def the_lock_is_lost_while_a_host_is_down() -> World:
    world = World(Shape(nodes=3))
    await world.all_need_a_reboot()
    await until(lambda: any(event.what == "down" for event in world.fleet.log))
    people.edit_lock(world, lambda _: None)
    await world.until_home(1200.0)
    world.stop()
    return world


def test_no_other_node_reboots_if_the_lock_is_removed_while_a_host_is_down() -> None:
    world = run_virtually(the_lock_is_lost_while_a_host_is_down())
    lenient = world.verdict(but=("claim", "claims", "release"))  # the person took the claim away, not an agent
    assert lenient == [], world.report(lenient)


async def a_lock_without_a_ttl_of_a_node_that_is_gone() -> World:
    world = World(Shape(nodes=2))
    people.edit_lock(world, lambda _: {"nodeID": "gone", "created": "2024-07-17T12:40:44Z", "TTL": 0})
    await world.all_need_a_reboot()
    await world.until_home(900.0)
    world.stop()
    return world


def test_the_claim_of_a_deleted_node_is_removed_even_if_the_claim_has_no_ttl() -> None:
    world = run_virtually(a_lock_without_a_ttl_of_a_node_that_is_gone())
    broken = world.verdict(but=("theft",))  # the journal never saw the Node, so the judge takes it for alive
    assert broken == [], world.report(broken)


async def a_drain_that_cannot_end(release_delay_seconds: float) -> tuple[float, float]:
    """Play a drain whose evictions all fail. Return the seconds from the cordon to the uncordon, and from the cordon to
    the release of the claim."""

    def plan(_number: int, _node: str, request: Request) -> Fault | None:
        is_eviction = request.path.endswith("/eviction") and b"dryRun" not in (request.body or b"")
        return Fault.FAILED if is_eviction and "dryRun" not in request.query else None

    world = World(Shape(nodes=1), plan=plan)
    settings(
        world, lock_release_delay_seconds=release_delay_seconds, drain=DrainPolicy(timeout_seconds=30.0), reboot_tries=1
    )
    await world.all_need_a_reboot()
    await until(lambda: is_cordoned(world, "n1"))
    cordoned_at = world.now
    await until(lambda: not is_cordoned(world, "n1"))
    uncordoned_at = world.now
    await until(lambda: not holders(world))
    world.stop()
    return uncordoned_at - cordoned_at, world.now - cordoned_at


def test_a_node_whose_drain_failed_releases_its_claim_without_the_release_delay() -> None:
    cordoned, held = run_virtually(a_drain_that_cannot_end(release_delay_seconds=1800.0))
    assert 30.0 <= cordoned <= held < 60.0


async def taints_during_the_release_delay() -> set[bool]:
    """Watch a rebooted node from its uncordon until it releases its claim. Return the set {True} if the node always had
    careen's soft taint (PreferNoSchedule), {False} if it never had the taint, and {True, False} if it had the taint for
    a part of this time."""
    world = World(Shape(nodes=1))
    settings(world, lock_release_delay_seconds=120.0)
    await world.all_need_a_reboot()
    await until(lambda: world.fleet.hosts["n1"].boot == 2 and not is_cordoned(world, "n1"))
    seen: set[bool] = set()
    while holders(world):
        seen.add(any(taint["key"].startswith("careen.dev/") for taint in node(world, "n1")["spec"].get("taints") or ()))
        await asyncio.sleep(0.05)
    world.stop()
    return seen


def test_a_rebooted_node_has_no_prefer_no_schedule_taint_during_its_release_delay() -> None:
    assert run_virtually(taints_during_the_release_delay()) == {False}


async def nodes_without_annotations() -> World:
    world = World(Shape(nodes=2))
    settings(world, annotate_nodes=True)
    for name in world.shape.names:
        bare = {**node(world, name)["metadata"]}
        bare.pop("annotations", None)
        world.server.change("nodes", name, lambda old, bare=bare: {**old, "metadata": bare}, actor="person")
    world.initial = {each["metadata"]["name"]: each for each in world.server.all("nodes")}
    await world.all_need_a_reboot()
    await world.until_home(600.0)
    world.stop()
    return world


def test_the_agent_writes_kureds_annotations_on_nodes_without_annotations() -> None:
    world = run_virtually(nodes_without_annotations())
    for name in world.shape.names:
        annotations = node(world, name)["metadata"]["annotations"]
        assert "weave.works/kured-most-recent-reboot-needed" in annotations
        assert "weave.works/kured-reboot-in-progress" not in annotations
    broken = [each for each in world.verdict() if "kured-most-recent-reboot-needed" not in each]
    assert broken == [], world.report(broken)
