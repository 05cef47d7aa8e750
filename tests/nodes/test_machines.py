"""Tests machines and kubelets that hang, do not return, pause, or are rebooted by people."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.cluster.harness.workloads import daemon_set, deployment, on_node
from tests.nodes.harness.machine import Machine
from tests.nodes.harness.story import Story
from tests.nodes.harness.workloads import before_stop

pytestmark = pytest.mark.cluster


def hangs_during_shutdown(machine: Machine) -> None:
    """Add a unit that never stops, so that the shutdown of the machine never completes."""
    stop = ("--property=ExecStop=/bin/sleep infinity", "--property=TimeoutStopSec=infinity")
    machine.run("systemd-run", "--unit=stubborn", *stop, "/bin/sleep", "infinity")


def stops(story: Story, machine: Machine) -> None:
    """Wait until the shutdown of the machine has stopped its kubelet."""
    story.wait_for(
        f"{machine.name} stops", lambda: machine.run("systemctl", "is-active", "kubelet", check=False) != "active\n"
    )


def test_a_drain_continues_after_a_paused_kubelet_has_started_again(story: Story) -> None:
    machine = story.machines[0]
    story.workloads(deployment("slow", 2, containers=[before_stop(5)], **on_node(machine.name)))
    story.install()
    story.want_reboot([machine])
    story.drains(machine)
    machine.run("systemctl", "stop", "kubelet")
    story.wait_for("the node is not Ready", lambda: not story.node(machine).ready)
    machine.run("systemctl", "start", "kubelet")
    story.finishes(machine)
    story.judge(machine)


def test_a_machine_that_hangs_in_shutdown_is_in_service_after_a_power_cycle(story: Story) -> None:
    machine, other, _ = story.machines
    story.workloads()
    story.install()
    hangs_during_shutdown(machine)
    story.want_reboot([machine])
    story.reaches(machine, "Rebooting")
    story.want_reboot([other])
    stops(story, machine)
    story.wait_for(f"{machine.name} is not Ready", lambda: not story.node(machine).ready)
    machine.power_off()
    assert story.holders() == (machine.name,)
    machine.power_on()
    story.finishes(machine, other)
    story.judge(machine, other)


def test_a_machine_that_does_not_come_back_halts_the_roll_out(story: Story) -> None:
    machine, other, _ = story.machines
    story.workloads()
    story.install(reboot_deadline="3m")
    hangs_during_shutdown(machine)
    story.want_reboot([machine])
    story.reaches(machine, "Rebooting")
    story.want_reboot([other])
    stops(story, machine)
    machine.power_off()
    story.wait_for(f"{machine.name} is not Ready", lambda: not story.node(machine).ready)
    overdue = f"waits for overdue nodes: {machine.name} was asked to reboot"
    story.wait_for(
        "the waiting node reports that the other node is overdue",
        lambda: overdue in story.node(other).annotations.get("careen.dev/reason", ""),
    )
    assert story.holders() == (machine.name,)
    assert not any(one.unschedulable for one in story.observer.node_history(other.name))
    machine.power_on()
    story.finishes(machine, other)
    story.judge(machine, other)


def test_a_reboot_by_a_person_starts_no_roll_out(story: Story) -> None:
    machine = story.machines[0]
    story.workloads()
    story.install()
    machine.by_hand = True
    machine.run("systemctl", "reboot")
    story.wait_for("it is back", lambda: story.is_home(machine))
    story.wait_for("every pod is ready again", story.workloads_are_ready)
    story.agents_are_ready()
    assert [lock.holders for lock in story.observer.seen.locks if lock.holders] == []
    assert not any(one.unschedulable for one in story.observer.node_history(machine.name))
    story.judge(machine)


@pytest.fixture
def kubelets_wait_at_shutdown(story: Story) -> Story:
    for machine in story.machines:
        period = r"shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 5s"
        machine.run("sed", "-i", rf"$ a {period}", "/etc/lab/kubelet.yaml")
    restart_kubelets(story)
    story.wait_for("the kubelets delay a shutdown", lambda: all("kubelet" in inhibitors(one) for one in story.machines))
    return story


def inhibitors(machine: Machine) -> str:
    return machine.run("systemd-inhibit", "--list", "--no-legend", "--no-pager", check=False)


@pytest.fixture
def kubelets_as_before(story: Story) -> object:
    yield
    for machine in story.machines:
        machine.run("sed", "-i", "/^shutdownGrace/d", "/etc/lab/kubelet.yaml")
    restart_kubelets(story)


def restart_kubelets(story: Story) -> None:
    """Restart every kubelet and wait until each kubelet reports Ready again. Then let the observer forget its records,
    because a restart may make a node NotReady for a moment.
    """
    began = datetime.now(UTC).replace(microsecond=0)
    for machine in story.machines:
        machine.run("systemctl", "restart", "kubelet")
    story.wait_for("each kubelet reports Ready again", lambda: story.lab.have_reported_ready_since(began))
    story.acts_as(story.identity)


def test_graceful_node_shutdown_ends_the_remaining_pods_before_the_reboot(
    story: Story, kubelets_as_before: object, kubelets_wait_at_shutdown: Story
) -> None:
    machine = story.machines[0]
    story.workloads(daemon_set("log-shipper", containers=[before_stop(3)]))
    story.install()
    story.want_reboot([machine])
    story.finishes(machine)
    story.judge(machine)
    log = machine.run("journalctl", "--unit=kubelet", "--boot=-1", "--no-pager", check=False)
    # The kubelet ended the DaemonSets' pods. It writes the second sentence if the controller makes new ones in time.
    ended = ("in response to imminent node shutdown", "Pod was rejected as the node is shutting down")
    assert any(sentence in log for sentence in ended), log[-3000:]
    assert "log-shipper" in log, log[-3000:]


def test_the_agent_warns_that_a_reboot_by_signal_bypasses_graceful_node_shutdown(
    story: Story, kubelets_as_before: object, kubelets_wait_at_shutdown: Story
) -> None:
    story.install("signal")
    story.wait_for(
        "every agent has posted the warning",
        lambda: sorted(set(story.events("ShutdownUnheard"))) == [one.name for one in story.machines],
    )
