"""Kills the process, or lets the API server fail, at each command of recorded stories. The end is always one that an
undisturbed run could have reached."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import cache

import pytest

from tests.scheduler_core.plugins.asking import using
from tests.scheduler_core.running.world import FAULTS, World

DIES_BEFORE, DIES_AFTER, WATCH_BREAKS = "dies before it", "dies after it", "watch breaks"
DISTURBANCES = (*FAULTS[1:], DIES_BEFORE, DIES_AFTER, WATCH_BREAKS)
STORIES = int(os.environ.get("MACHINE_STORIES", "3"))
STEP = int(os.environ.get("MACHINE_CRASH_STEP", "5"))
"""`make machine-crash-points` tries every command of 22 stories: 11,820 points of 40 ms of processor time."""


def story(seed: int) -> Iterator[World]:
    """Thirty pods of two priorities on four nodes with room for some of them, every fifth with a volume that is bound
    only when the pod has a node. Yields before each command."""
    chance = random.Random(seed)
    world = World()
    world.create_storage()
    for number in range(3):
        world.create_volume(f"v{number}", f"n{number}")
    for number in range(4):
        world.create_node(f"n{number}")
    names = [f"p{number:02}" for number in range(30)]
    for number, name in enumerate(names):
        volumes = using(world.create_claim(f"of-{name}", chance.choice(("make", "wait")))) if number % 5 == 0 else []
        world.create_pod(name, chance.choice((1, 1, 2)), chance.choice((0, 0, 0, 10)), volumes=volumes)
        if chance.random() < 0.5:
            world.deliver()
            world.run(3)
        if chance.random() < 0.1:
            world.remove("Pod", chance.choice(names))
        if chance.random() < 0.3:
            world.wait(1)
            world.volumes_work(can_provision=chance.random() < 0.9)
        while world.open and chance.random() < 0.7:
            yield world
    for _ in range(6):
        world.deliver()
        world.run(40)
        while world.open:
            yield world
        world.end_terminating()
        world.volumes_work()
        world.wait(5)


def disturbed(seed: int, at: int, disturbance: str) -> World:
    world = World()
    for number, world in enumerate(story(seed)):
        if number != at:
            world.carry_out()
        elif disturbance in FAULTS:
            world.carry_out(0, disturbance)
        elif disturbance == WATCH_BREAKS:
            world.relist()
            if world.open:
                world.carry_out()
        else:
            if disturbance == DIES_AFTER:
                world.effect(world.open[0])
            world.start()
        if number >= at:  # what comes before is the same for all points
            world.check()
    return world


@cache
def commands(seed: int) -> int:
    """The number of commands of an undisturbed story."""
    count = 0
    for world in story(seed):
        world.carry_out()
        count += 1
    return count


@pytest.mark.parametrize("disturbance", DISTURBANCES)
@pytest.mark.parametrize("seed", range(STORIES))
def test_every_pod_that_fits_is_bound_and_no_node_is_over_its_allocatable(seed: int, disturbance: str) -> None:
    tried = range(seed % STEP, commands(seed), STEP)
    assert tried
    for at in tried:
        world = disturbed(seed, at, disturbance)
        world.settle()
        world.check()
        world.the_cache_equals_a_fresh_load()
        world.what_fits_is_bound()


def test_22_stories_have_more_than_10_000_points() -> None:
    assert sum(map(commands, range(22))) * len(DISTURBANCES) > 10_000
