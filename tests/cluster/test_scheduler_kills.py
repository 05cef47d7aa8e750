"""Kills `careen scheduler` at random instants of a burst of pods, again and again, and starts it anew each time.

SCHEDULER_KILLS is the number of kills; `make scheduler-kills` sets 200.
"""

from __future__ import annotations

import os
import random
import threading
import time

import pytest

from tests.cluster.harness.machines.schedulers import Schedulers

pytestmark = pytest.mark.cluster

KILLS = int(os.environ.get("SCHEDULER_KILLS", "12"))
SEED = int(os.environ.get("SCHEDULER_KILLS_SEED", "36"))
NODES, CPUS, BURST = 20, 4, 40  # the pods request one cpu each
SLOW = {"clientConnection": {"qps": 30, "burst": 1}}  # a burst takes more than a second


def test_no_pod_is_lost_or_bound_twice_when_the_scheduler_is_killed_again_and_again(schedulers: Schedulers) -> None:
    chance = random.Random(SEED)
    schedulers.nodes(NODES, cpus=CPUS)
    began = time.monotonic()
    schedulers.start("probe").says("careen schedules")
    start_seconds = time.monotonic() - began
    schedulers.close()
    midway = 0
    for number in range(KILLS):
        _make_room(schedulers, chance)
        burst = threading.Thread(target=schedulers.pods, args=([f"p{number}-{each}" for each in range(BURST)],))
        scheduler = schedulers.start(f"killed-{number}", settings=SLOW)
        bound = len(schedulers.bindings())
        burst.start()
        time.sleep(chance.uniform(0.5, 1.0) * start_seconds + chance.uniform(0, 1.5))
        scheduler.program.kill()
        burst.join()
        bound = len(schedulers.bindings()) - bound
        midway += 0 < bound < len(schedulers.unbound()) + bound
        print(f"kill {number}: after {bound} bindings", flush=True)
        schedulers.no_node_is_too_full()
    _make_room(schedulers, chance)
    schedulers.start("last")
    schedulers.all_bound()
    schedulers.judge()
    assert midway >= KILLS // 6, f"only {midway} of {KILLS} kills met a scheduler that was binding"


def _make_room(schedulers: Schedulers, chance: random.Random) -> None:
    """So many pods are deleted that all others fit, bound or not."""
    names = sorted(schedulers.listed())
    for name in chance.sample(names, max(0, len(names) - (NODES * CPUS - BURST))):
        schedulers.delete(name)
