"""Tests changes of the concurrency while nodes reboot."""

from __future__ import annotations

import math
import time

import pytest

from tests.cluster.harness.measures.figures import down_spans, most_at_once
from tests.cluster.harness.story import Story

pytestmark = pytest.mark.cluster


def most_down(story: Story, since: float = 0.0, until: float = math.inf) -> int:
    """Return the largest number of nodes that were down at the same moment. Counts only nodes that went down between
    `since` and `until` (seconds since 1970).
    """
    end = time.time()
    return most_at_once(
        span
        for host in story.hosts.values()
        for span in down_spans(story.observer.node_history(host.name), end)
        if since < span.start < until
    )


def test_a_raised_concurrency_takes_effect_without_a_restart(story: Story) -> None:
    story.settings(concurrency=1)
    hosts = story.nodes(6, change=lambda host: setattr(host, "boot_seconds", 6.0))
    story.need_reboot(hosts)
    story.any_of(hosts, "Draining", "Rebooting")
    changed = time.time()
    story.settings(concurrency=3)
    story.finishes(hosts, 240)
    story.judge(concurrency=3)
    assert most_down(story, until=changed) == 1
    assert most_down(story) > 1
    assert sum(host.starts for host in hosts) == 12  # agents started again only after reboots


def test_after_lowering_the_concurrency_no_node_is_drained_until_enough_nodes_are_back(story: Story) -> None:
    story.settings(concurrency=3)
    hosts = story.nodes(6, change=lambda host: setattr(host, "boot_seconds", 8.0))
    story.need_reboot(hosts)
    story.wait_for("several nodes have a claim", lambda: len(story.holders()) >= 2)
    story.settings(concurrency=1)
    changed = time.time() + 8  # the agents see it within seconds
    story.finishes(hosts, 300)
    story.judge(concurrency=3)
    assert most_down(story, since=changed) == 1


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_a_rolling_update_to_another_concurrency_keeps_the_lock_valid(story: Story, before: int, after: int) -> None:
    hosts = story.nodes(4, f"--concurrency={before}", change=lambda host: setattr(host, "boot_seconds", 6.0))
    story.need_reboot(hosts)
    story.any_of(hosts, "Rebooting")
    changed = time.time()
    story.flags = [f"--concurrency={after}"]
    for host in hosts:
        story.the_fleet().stop_agent(host)
        time.sleep(1)
    updated = time.time() + 5  # the last one has started with the new flag
    story.finishes(hosts, 240)
    story.judge(concurrency=max(before, after))
    assert most_down(story, until=changed) <= before
    assert most_down(story, since=updated) <= after
    story.is_clean(hosts)
