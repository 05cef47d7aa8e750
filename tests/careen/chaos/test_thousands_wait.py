"""Thousands of nodes wait for their reboot because of an obstacle, for example a pause. The tests limit the number of
requests to the API server, and the time from the end of the obstacle until a node takes a claim."""

from __future__ import annotations

import asyncio

import pytest

from careen.core.lock import changes, pauses
from careen.core.lock.pauses import SPREAD_SECONDS
from tests.careen.chaos.fleet.thousands import (
    MOST_REQUESTS_PER_SECOND,
    REAL,
    SETTLED_SECONDS,
    STORIES,
    THOUSANDS,
    Obstacle,
    allow_pods,
    block_by_pods,
    both,
    edit,
    hold_all,
    idle,
    let_all_go,
    nothing,
    others_hold,
    pause,
    put_a_crowd,
    resume,
    set_number_of_agents,
    waiting,
)
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World


@pytest.mark.parametrize("reason", STORIES)
def test_thousands_of_waiting_nodes_send_fewer_than_twenty_requests_a_second(reason: str) -> None:
    story = STORIES[reason]
    cost = run_virtually(waiting(story.first, later=story.later))
    assert len(cost.others) >= REAL - 13 - 1
    assert 0 < cost.of(story.waiting) < MOST_REQUESTS_PER_SECOND


@pytest.mark.parametrize("asleep", [False, True])
def test_thousands_of_idle_nodes_send_fewer_than_twenty_requests_a_second(asleep: bool) -> None:
    assert 0 < run_virtually(idle(asleep=asleep)) < MOST_REQUESTS_PER_SECOND


async def seconds_until_a_claim(world: World, obstacle: Obstacle, end: Obstacle, *, agents: int) -> float:
    """Call `obstacle`, which makes all nodes wait, and later `end`, which ends the obstacle. Return the seconds from
    the call of `end` until a node takes a claim."""
    set_number_of_agents(world, agents)
    obstacle(world)
    await world.all_need_a_reboot()
    await asyncio.sleep(SETTLED_SECONDS)
    end(world)
    began = world.now
    while not (holders := {row["nodeID"] for row in world.lock().get("locks", [])} & set(world.shape.names)):
        assert world.now < began + 2 * pauses.LONGEST_LOOK_SECONDS, "no node claims"
        await asyncio.sleep(0.5)
    world.stop()
    assert len(holders) == 1
    return world.now - began


def release(world: World) -> None:
    """Remove the claim of the Node `elsewhere`, for which all other nodes wait, and end the pause of the lock."""
    edit(world, lambda content: changes.release_by_hand(changes.resume(content), "elsewhere"))


BY_THEN = pauses.OTHERS_LOOK_SECONDS + pauses.GATHER_SECONDS + 5.0
# With more than 500 agents, the soft taints are spread over a minute. A new roll-out waits this minute longer before
# its first claim.
GATHERED_BY_THEN = BY_THEN + SPREAD_SECONDS


@pytest.mark.parametrize(
    ("agents", "obstacle", "end", "seconds"),
    [
        pytest.param(100, pause, resume, BY_THEN, id="4 of 100 nodes wait until a pause ends"),
        pytest.param(100, hold_all, let_all_go, BY_THEN, id="4 of 100 nodes wait until their holds are removed"),
        pytest.param(
            100, block_by_pods, allow_pods, BY_THEN, id="4 of 100 nodes wait until pods stop blocking the reboots"
        ),
        pytest.param(5000, others_hold, release, BY_THEN, id="4 of 5,000 nodes wait until kured's claim is released"),
        pytest.param(
            5000,
            both(hold_all, put_a_crowd),
            let_all_go,
            pauses.LONGEST_LOOK_SECONDS,
            id="4 nodes and a crowd of 200 more wait until their holds are removed",
        ),
        pytest.param(5000, pause, resume, GATHERED_BY_THEN, id="4 of 5,000 nodes wait until a pause ends"),
        pytest.param(
            5000, hold_all, let_all_go, GATHERED_BY_THEN, id="4 of 5,000 nodes wait until their holds are removed"
        ),
        pytest.param(
            500, block_by_pods, allow_pods, BY_THEN, id="4 of 500 nodes wait until pods stop blocking the reboots"
        ),
        pytest.param(
            1000, hold_all, let_all_go, GATHERED_BY_THEN, id="4 of 1,000 nodes wait until their holds are removed"
        ),
    ],
)
def test_a_waiting_node_takes_a_claim_soon_after_the_obstacle_is_removed(
    agents: int, obstacle: Obstacle, end: Obstacle, seconds: float
) -> None:
    async def story() -> float:
        return await seconds_until_a_claim(World(Shape(nodes=4), seed=3), obstacle, end, agents=agents)

    assert run_virtually(story()) <= seconds


async def paused_with_a_line() -> float:
    """Pause the lock while all nodes wait in line behind the claim of another node. Later end the pause and remove this
    claim in one write. Return the seconds from this write until a node takes a claim."""
    world = World(Shape(nodes=4), seed=3)
    others_hold(world)
    world.at(600.0, lambda: pause(world))
    return await seconds_until_a_claim(world, nothing, release, agents=THOUSANDS)


def test_the_next_node_in_line_takes_a_claim_soon_after_the_pause_ends() -> None:
    assert run_virtually(paused_with_a_line()) <= BY_THEN
