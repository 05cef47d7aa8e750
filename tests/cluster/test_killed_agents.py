"""Tests agents that are killed by SIGKILL in any phase: the next agent process continues the work, and no rule is
broken."""

from __future__ import annotations

import pytest

from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment, on_node

pytestmark = pytest.mark.cluster


def is_through(story: Story, hosts: list[Host]) -> None:
    """Wait until each node has rebooted, and check the rules that hold in every test with nodes. Each node must have
    rebooted only once."""
    story.finishes(hosts)
    story.judge()
    story.is_clean(hosts)
    assert [len(host.reboots) for host in hosts] == [1] * len(hosts)


def test_a_node_that_waits_for_its_reboot_keeps_waiting_after_its_agent_is_killed(story: Story) -> None:
    first, second = hosts = story.nodes(2)
    story.annotate_node(first, "careen.dev/hold", "wait")
    story.need_reboot(hosts)
    story.reaches(first, "Waiting")
    story.finishes_one(second)
    since = story.state(first).annotations["careen.dev/since"]
    story.the_fleet().kill_agent(first)
    story.agents_answer()
    story.stays("it waits, tainted", lambda: story.phase(first) == "Waiting" and story.is_tainted(first), 3)
    assert story.state(first).annotations["careen.dev/since"] == since
    story.annotate_node(first, "careen.dev/hold", None)
    is_through(story, hosts)


def test_a_node_whose_agent_is_killed_during_a_drain_continues_and_reboots_once(story: Story) -> None:
    hosts = story.nodes(3)
    story.workloads(deployment("slow", 3, stop_seconds=8, **on_node(hosts[0].name)))
    # The node selector allows only this node, so its pods return to it.
    story.need_reboot(hosts[:1])
    story.reaches(hosts[0], "Draining")
    story.wait_for(
        "evictions are under way",
        lambda: any(life.deleting_at for life in story.observer.pods() if life.node == hosts[0].name),
    )
    boot = hosts[0].boot_id
    story.the_fleet().kill_agent(hosts[0])
    story.wait_for("another agent runs", lambda: hosts[0].starts == 2)
    assert hosts[0].boot_id == boot
    is_through(story, hosts[:1])


def test_an_agent_that_is_killed_after_its_reboot_request_does_not_assume_a_reboot(story: Story) -> None:
    hosts = story.nodes(2, change=lambda host: setattr(host, "shutdown_seconds", 6.0))
    story.need_reboot(hosts)
    first = story.any_of(hosts, "Rebooting")
    story.wait_for("the host was asked to reboot", first.requests.exists)
    story.the_fleet().kill_agent(first)
    story.wait_for("another agent runs", lambda: first.starts == 2)
    is_through(story, hosts)


def test_if_an_agent_is_killed_in_the_phase_verifying_the_next_agent_uncordons_the_node(story: Story) -> None:
    hosts = story.nodes(2, change=lambda host: setattr(host, "ready_after_seconds", 6.0))
    story.need_reboot(hosts)
    first = story.any_of(hosts, "Verifying")
    assert story.state(first).unschedulable
    story.the_fleet().kill_agent(first)
    story.wait_for("another agent runs", lambda: first.starts == 3)
    assert story.holders() == (first.name,)
    is_through(story, hosts)


def test_an_agent_that_is_stopped_and_started_again_continues_its_drain(story: Story) -> None:
    (host,) = story.nodes(1)
    story.workloads(deployment("slow", 2, stop_seconds=8))
    story.need_reboot([host])
    story.reaches(host, "Draining")
    agent = host.agent
    assert agent is not None
    story.the_fleet().stop_agent(host)
    story.wait_for("it ended", lambda: agent.exit_code() is not None, 9)  # after 10 s the host would have killed it
    assert agent.exit_code() == 0
    is_through(story, [host])


def test_two_agents_on_one_node_reboot_the_node_once(story: Story) -> None:
    hosts = story.nodes(2)
    second = story.the_fleet().start_another_agent(hosts[0])
    story.need_reboot(hosts)
    is_through(story, hosts)
    second.stop()


def test_two_agents_on_one_node_that_share_no_lock_file_reboot_the_node_once(story: Story) -> None:
    hosts = story.nodes(2, "--host-lock-dir=")
    second = story.the_fleet().start_another_agent(hosts[0])
    story.need_reboot(hosts)
    is_through(story, hosts)
    second.stop()
