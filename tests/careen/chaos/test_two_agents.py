"""Simulated roll-outs with one of two troubles. In the first case, two agents run on every node, because the simulated
hosts have no lock file that would stop the second agent. In the second case, a person removes the annotations with the
progress of the reboots.

In both cases, no claim is removed from the lock between the request for a reboot and the host's next boot. With two
agents on every node, each reboot is also requested only once."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator

import pytest

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import OF_PROCESSES, OF_READS, Fault
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

SEEDS = range(int(os.environ.get("CHAOS_SEEDS", "4")) // 2)
REBOOT_DEADLINE_SECONDS = 600.0
"""Longer than several freezes: a process that freezes beyond the deadline, before it asks the host, leaves a failed
node for a person to mend."""
_DEADLY = frozenset({*OF_PROCESSES, Fault.OUTAGE})


def asked_twice(world: World) -> Iterator[str]:
    """Yield a sentence for each host that was asked to reboot more than once during one boot. No process dies in these
    simulations, so no new process has a reason to repeat the request."""
    asked = Counter((event.host, event.boot_id) for event in world.fleet.log if event.what == "asked")
    return (
        f"{host} was asked {count} times to reboot during the boot {boot}"
        for (host, boot), count in asked.items()
        if count > 1
    )


async def two_agents(seed: int, fault_rate: float, shutdown_seconds: float) -> World:
    def plan(_number: int, _node: str, request: Request) -> Fault | None:
        if world.chance.random() >= fault_rate:
            return None
        fault = world.chance.choice([each for each in Fault if each not in _DEADLY])
        return fault if request.method != "GET" or fault in OF_READS else None

    world = World(Shape(nodes=3, concurrency=1 + seed % 2), plan=plan, seed=seed)
    world.fleet.shutdown_seconds = (0.1, shutdown_seconds)
    for name in world.shape.names:
        world.settings[name] = {"reboot_deadline_seconds": REBOOT_DEADLINE_SECONDS}
        world.at(
            world.chance.uniform(0.0, 40.0),
            lambda name=name: world.agents.start(name) if world.fleet.hosts[name].is_up else None,
        )
        world.fleet.on_up = lambda name: (world.agents.start(name), world.agents.start(name))
    await world.all_need_a_reboot()
    await world.until_home(1500.0)
    world.stop()
    return world


@pytest.mark.parametrize("shutdown_seconds", [4.0, 90.0], ids=["fast hosts", "hosts that shut down slowly"])
@pytest.mark.parametrize("fault_rate", [0.0, 0.05], ids=["no faults", "faults"])
@pytest.mark.parametrize("seed", SEEDS)
def test_two_agents_per_node_request_each_reboot_once_and_keep_the_claim(
    seed: int, fault_rate: float, shutdown_seconds: float
) -> None:
    world = run_virtually(two_agents(seed, fault_rate, shutdown_seconds))
    broken = [
        *asked_twice(world),
        *world.verdict(but=("taint", "own-node", "claim", "claims", "settled", "service", "release")),
    ]
    assert not broken, world.report(broken)


async def wiped(seed: int, phase: str) -> World:
    """Play a roll-out in which a person removes the record (the annotation with the reboot's progress) of each node
    once, at most two seconds after the node enters `phase`. Sometimes the agent dies as well."""
    world = World(Shape(nodes=2), seed=seed)
    world.fleet.shutdown_seconds = (0.1, 20.0)
    done: set[str] = set()

    async def watch() -> None:
        while len(done) < 2:
            await asyncio.sleep(0.05)
            for name in set(world.shape.names) - done:
                node = world.server.get("nodes", name)
                if node and (node["metadata"].get("annotations") or {}).get("careen.dev/phase") == phase:
                    done.add(name)
                    await asyncio.sleep(world.chance.uniform(0.0, 2.0))
                    people.wipe_record(world, name)
                    if world.chance.random() < 0.4:
                        people.crash_agent(world, name)

    watching = asyncio.ensure_future(watch())
    await world.all_need_a_reboot()
    await world.until_home(900.0)
    watching.cancel()
    assert done, f"no node reached {phase}"
    world.stop()
    return world


@pytest.mark.parametrize("phase", ["Waiting", "Claiming", "Draining", "Rebooting", "Verifying", "Settling"])
@pytest.mark.parametrize("seed", SEEDS)
def test_removing_the_record_annotation_in_any_phase_breaks_no_rule(seed: int, phase: str) -> None:
    world = run_virtually(wiped(seed, phase))
    # In Settling the node is uncordoned again, so a claim whose node has no record is stale. Any agent may remove it,
    # and then no Event reports the release.
    tolerated = ("reported",) if phase == "Settling" else ()
    broken = [
        *world.verdict(
            but=(
                *(
                    "taint",
                    "finished",
                    "once",
                    "tidy",
                    "claim",
                    "claims",
                    "settled",
                    "service",
                    "release",
                    "drained",
                    "explained",
                ),
                *tolerated,
            )
        ),
    ]
    assert not broken, world.report(broken)
