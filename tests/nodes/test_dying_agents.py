"""Tests agents that die: the container is killed in each phase, and the DaemonSet is changed or deleted during a
drain.
"""

from __future__ import annotations

import pytest

from tests.cluster.harness.workloads import deployment, on_node
from tests.nodes.harness.machine import Machine
from tests.nodes.harness.story import Story
from tests.nodes.harness.workloads import before_stop

pytestmark = pytest.mark.cluster


def drains_slowly(story: Story, *components: str) -> None:
    """Bring the first machine into the middle of a slow drain."""
    machine = story.machines[0]
    story.workloads(deployment("slow", 2, containers=[before_stop(12)], **on_node(machine.name)))
    story.install(*components)
    story.want_reboot([machine])
    story.drains(machine)


def new_phase(story: Story, machine: Machine, seen: list[str]) -> str:
    """Return the machine's phase, or an empty text if the phase is Idle or in `seen`."""
    phase = story.phase(machine)
    return "" if phase in (*seen, "Idle") else phase


def test_a_node_whose_agent_is_killed_in_every_phase_reboots_once(story: Story) -> None:
    machine = story.machines[0]
    story.workloads(deployment("slow", 2, containers=[before_stop(5)], **on_node(machine.name)))
    story.install()
    story.want_reboot([machine])
    killed: list[str] = []
    while not (killed and story.is_home(machine)):
        phase = story.wait_for(
            "the node is in another phase, or back in service",
            lambda: "home" if story.is_home(machine) else new_phase(story, machine, killed),
        )
        if phase != "home" and story.kill_agent(machine):
            killed.append(phase)
    assert "Draining" in killed
    # On a fast machine a phase may be over before the next check. The pods of `slow` make the drain last.
    assert {"Verifying", "Settling"} & set(killed)
    story.finishes(machine)
    story.judge(machine)


def test_a_rolling_restart_of_the_daemonset_does_not_disturb_a_drain(story: Story) -> None:
    drains_slowly(story)
    story.lab.kubectl("rollout", "restart", "daemonset/careen", "-n", "careen")
    story.finishes(story.machines[0])
    story.judge(story.machines[0])
    story.agents_are_ready()


def test_an_agent_with_an_updated_image_continues_the_drain(story: Story) -> None:
    drains_slowly(story)
    story.apply(tag="0.2.0")
    story.finishes(story.machines[0])
    story.judge(story.machines[0])
    story.agents_are_ready()
    images = {story.agent_pod(machine)["spec"]["containers"][0]["image"] for machine in story.machines}
    assert images == {"careen.invalid/careen:0.2.0"}


def test_the_drain_continues_after_all_manifests_were_deleted_and_applied_again(story: Story) -> None:
    drains_slowly(story)
    story.lab.kubectl("delete", "-k", str(story.folder / "overlay"))
    story.install()
    story.finishes(story.machines[0])
    story.judge(story.machines[0])
