"""Tests a slow webhook that delays every eviction by eight seconds. A hold (by which a person keeps a node from
rebooting) still takes effect during the drain, and the drain continues after the hold ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.harness.machines.slow_webhook import SlowWebhook
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment

pytestmark = pytest.mark.cluster


@pytest.fixture
def webhook(story: Story, tmp_path: Path) -> Iterator[SlowWebhook]:
    webhook = SlowWebhook(story.admin, tmp_path / "webhook", seconds=0.0)
    yield webhook
    webhook.close()


def test_a_hold_annotation_takes_effect_while_a_dozen_slow_evictions_are_in_progress(
    story: Story, webhook: SlowWebhook
) -> None:
    first, second = story.nodes(2)
    story.cordon(second)
    story.workloads(deployment("web", 12))
    story.cordon(second, cordoned=False)
    story.need_reboot([first])
    story.reaches(first, "Draining")
    webhook.seconds = 8.0
    story.wait_for("an eviction is in progress", lambda: webhook.asked > 0)
    assert story.command("hold", first.name, "--reason", "stop").returncode == 0
    story.wait_for(
        "the node is in service again", lambda: not story.state(first).unschedulable and not story.holders(), 30
    )
    assert not first.reboots
    webhook.seconds = 0.0
    assert story.command("unhold", first.name).returncode == 0
    story.finishes([first])
    story.judge()
