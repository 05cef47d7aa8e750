"""Tests the disturbances of the demo: they kill agents often, but every node still makes progress."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from drydock.hosts.disturbances import crash_agents
from tests.careen.chaos.fleet.virtual_time import run_virtually


async def crashes(nodes: int, seed: int, seconds: float) -> dict[str, list[float]]:
    """Run `crash_agents` for `seconds`. Map each agent to the times at which it was killed."""
    names = [f"node-{number:02}" for number in range(nodes)]
    killed: list[tuple[str, float]] = []
    loop = asyncio.get_running_loop()
    work = asyncio.ensure_future(
        crash_agents(lambda name: killed.append((name, loop.time())), names, random.Random(seed))
    )
    await asyncio.sleep(seconds)
    work.cancel()
    return {name: [at for who, at in killed if who == name] for name in names}


@pytest.mark.parametrize("seed", range(5))
def test_the_pause_between_two_kills_of_one_agent_doubles(seed: int) -> None:
    """Because the pauses grow, each agent finally has enough time to start, to forecast and to drain, even on a slow
    computer."""
    (times,) = run_virtually(crashes(1, seed, 600.0)).values()
    pauses = [later - before for before, later in itertools.pairwise(times)]
    assert len(pauses) >= 5
    assert all(pause >= 6.0 * 2**number for number, pause in enumerate(pauses))


@pytest.mark.parametrize("seed", range(5))
def test_twelve_agents_are_killed_many_times_in_one_roll_out(seed: int) -> None:
    assert sum(len(times) for times in run_virtually(crashes(12, seed, 120.0)).values()) >= 12
