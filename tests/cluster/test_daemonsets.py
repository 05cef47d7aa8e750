"""Tests DaemonSet pods that are not ready after the reboot. Such pods halt the roll-out only if they were ready before
the reboot.
"""

from __future__ import annotations

import pytest

from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import SHOP, daemon_set, on_node

pytestmark = pytest.mark.cluster


def test_a_daemonset_pod_that_was_never_ready_does_not_halt_the_roll_out(story: Story) -> None:
    hosts = story.nodes(2, "--verify-timeout=10s")
    broken = daemon_set("crashes", never_ready=True, **on_node(hosts[0].name))
    story.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}}, broken)
    story.wait_for(
        "the pod of the DaemonSet exists",
        lambda: any(life.owner == "DaemonSet/crashes" and life.node == hosts[0].name for life in story.observer.pods()),
    )
    story.need_reboot(hosts)
    story.finishes(hosts)
    story.judge()
    story.is_clean(hosts)
    assert not story.events("NeverReady")
    assert not any(life.ready_at for life in story.observer.pods() if life.owner == "DaemonSet/crashes"), (
        "the pod of the DaemonSet `crashes` was ready, so this test proves nothing"
    )


def test_a_daemonset_pod_that_becomes_unready_halts_the_roll_out(story: Story) -> None:
    """The pod is ready before the reboot and stays unready for a while after the reboot."""
    first, second = story.nodes(2, "--verify-timeout=6s", change=lambda host: setattr(host, "pods_after_seconds", 25.0))
    story.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}},
        daemon_set("log-shipper", **on_node(first.name)),
    )
    story.wait_for(
        "the pod of the DaemonSet is ready",
        lambda: any(life.owner == "DaemonSet/log-shipper" and life.ready_at for life in story.observer.pods()),
    )
    story.need_reboot([first])
    story.reaches(first, "Failed")
    assert "log-shipper" in story.reason(first)
    second.ask_for_reboot()
    story.stays("no other node starts", lambda: story.holders() == (first.name,) and not second.reboots, 4)
    second.pods_after_seconds = 0.5
    shipper = f"/apis/apps/v1/namespaces/{SHOP}/daemonsets/log-shipper"
    story.wait_for("the pod is ready again", lambda: story.admin.get(shipper)["status"].get("numberReady") == 1, 90)
    assert story.command("retry", first.name).returncode == 0
    story.finishes([first, second])
    story.judge()
