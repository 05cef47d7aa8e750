"""The tests on real nodes that `.ci/run` runs for every change."""

from __future__ import annotations

import pytest

from tests.cluster.harness.workloads import daemon_set, deployment, on_node
from tests.nodes.harness.story import Story
from tests.nodes.harness.workloads import before_stop

pytestmark = pytest.mark.cluster


def test_the_unchanged_manifests_make_every_agent_ready(story: Story) -> None:
    story.install()
    pods = [story.agent_pod(machine) for machine in story.machines]
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods] == [0, 0, 0]
    assert story.holders() == ()
    story.judge(reboots=0)


@pytest.mark.parametrize(
    "components", [pytest.param([], id="reboot by command"), pytest.param(["signal"], id="reboot by signal")]
)
def test_three_nodes_reboot_one_after_another_under_a_budget(story: Story, components: list[str]) -> None:
    story.workloads(daemon_set("log-shipper"))
    story.install(*components)
    story.want_reboot()
    story.finishes()
    story.judge()
    for reason in ("Rebooted", "Released"):
        story.wait_for(
            f"each node has one Event {reason}", lambda reason=reason: story.events(reason) == ["n1", "n2", "n3"]
        )


def test_three_nodes_reboot_with_kureds_manifests_in_which_only_the_image_was_changed(story: Story) -> None:
    story.workloads()
    story.install_as_kured()
    story.want_reboot()
    story.finishes()
    story.judge()


def test_a_node_reboots_once_although_its_agent_is_killed_during_the_drain(story: Story) -> None:
    machine = story.machines[0]
    slow = deployment("slow", 2, containers=[before_stop(8)], **on_node(machine.name))
    story.workloads(slow)
    story.install()
    story.want_reboot([machine])
    story.drains(machine)
    story.kill_agent(machine)
    story.finishes(machine)
    story.judge(machine)


def test_a_machine_that_crashes_during_its_drain_returns_to_service(story: Story) -> None:
    machine = story.machines[0]
    story.workloads(deployment("slow", 2, containers=[before_stop(8)], **on_node(machine.name)))
    story.install()
    story.want_reboot([machine])
    story.drains(machine)
    machine.by_hand = True
    machine.run("reboot", "-f", check=False)
    story.finishes(machine)
    story.judge(machine)
