"""Tests the index of the waiting pods by the plugins that refused them."""

from __future__ import annotations

from scheduler_core.model.pod import Pod
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.queue.waiting import WaitingRoom


def test_a_pod_that_another_plugin_refuses_later_is_found_under_that_plugin_alone() -> None:
    room, queued = WaitingRoom(), QueuedPod(pod=Pod(name="a"), timestamp=0.0, unschedulable_plugins={"Old", "Both"})
    room.put(queued)
    queued.unschedulable_plugins = {"New", "Both"}
    room.put(queued)
    assert [room.refused_by([plugin]) for plugin in ("Old", "Both", "New")] == [[], [queued], [queued]]
