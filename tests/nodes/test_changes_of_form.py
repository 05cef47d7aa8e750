"""A kubelet's probes do not fail while agents sleep and wake."""

from __future__ import annotations

import pytest

from tests.nodes.harness.machine import Machine
from tests.nodes.harness.story import Story

pytestmark = pytest.mark.cluster


def is_asleep(machine: Machine) -> bool:
    return bool(machine.run("pgrep", "--full", "^/opt/careen/bin/python[0-9.]* -I -S ", check=False).split())


def test_a_kubelet_sees_an_agent_that_sleeps_and_wakes_as_one_healthy_container(story: Story) -> None:
    machine = story.machines[0]
    story.install(flags=["--sleep=auto"])
    for value in ("first", "second"):
        story.wait_for("the agent sleeps", lambda: is_asleep(machine))
        path = f"/api/v1/nodes/{machine.name}"
        story.lab.plane.admin.patch(path, {"metadata": {"labels": {"example.com/woken": value}}})
        story.wait_for("the agent wakes", lambda: not is_asleep(machine))
    story.wait_for("the agent sleeps", lambda: is_asleep(machine))
    pod = story.agent_pod(machine)
    (status,) = pod["status"]["containerStatuses"]
    assert (status["ready"], status["restartCount"]) == (True, 0)
    events = story.lab.plane.admin.list(f"/api/v1/namespaces/{story.identity.namespace}/events")
    ours = [each["message"] for each in events if each["involvedObject"]["name"] == pod["metadata"]["name"]]
    # The kubelet posts an Event for a failed probe; the first may come before the agent has started.
    assert [each for each in ours if "Liveness" in each] == []
    story.judge(reboots=0)
