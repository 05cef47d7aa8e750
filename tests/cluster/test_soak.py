"""Tests agents that die and an API server that fails at random times. No rule is broken, and each needed reboot happens
once.

By default the test is short and uses one seed. `make soak-cluster SOAK_SECONDS=1800 SOAK_SEED=7` runs it for half an
hour.
"""

from __future__ import annotations

import contextlib
import os
import random
import time

import pytest

from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment

SECONDS = float(os.environ.get("SOAK_SECONDS", "30"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
ROUND_SECONDS = 240.0
"""The time limit of a round, in which each host reboots once. It is longer than any measured round."""

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(SECONDS + 3600)]


@pytest.mark.parametrize("concurrency", [1, 2])
def test_dying_agents_and_outages_of_the_api_server_break_no_rule(story: Story, concurrency: int) -> None:
    chance = random.Random(f"{SEED} {concurrency}")
    hosts = story.nodes(4, f"--concurrency={concurrency}", "--drain-parallel=3")
    story.workloads(deployment("web", 6, stop_seconds=2))
    end, needs = time.monotonic() + SECONDS, 0
    while needs == 0 or time.monotonic() < end:
        needs += 1
        story.need_reboot(hosts)
        storm(story, hosts, chance, needs)
        story.wait_for(f"round {needs} is over", lambda needs=needs: is_over(story, hosts, needs), ROUND_SECONDS)
    assert [len(host.reboots) for host in hosts] == [needs] * len(hosts)
    story.judge(concurrency=concurrency)
    story.is_clean(hosts)


def storm(story: Story, hosts: list[Host], chance: random.Random, needs: int) -> None:
    """Kill an agent or the API server every few seconds, at most twelve times, until each host has rebooted `needs`
    times and is in service again."""
    for _ in range(12):
        time.sleep(chance.uniform(0.2, 4.0))
        if is_over(story, hosts, needs):
            return
        if chance.random() < 0.2:
            story.plane.stop_api_server()
            time.sleep(chance.uniform(0.0, 6.0))
            story.plane.start_api_server()
            continue
        running = [host for host in hosts if host.up and host.agent is not None]
        with contextlib.suppress(AssertionError):  # the machine has just gone down by itself
            story.the_fleet().kill_agent(chance.choice(running or hosts))


def is_over(story: Story, hosts: list[Host], needs: int) -> bool:
    return all(len(host.reboots) >= needs for host in hosts) and story.is_over(hosts)
