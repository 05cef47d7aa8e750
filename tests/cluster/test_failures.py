"""Tests failures of a node. After a failure, the roll-out halts or careen undoes the drain. careen repeats no step for
ever, and reports every failure.
"""

from __future__ import annotations

import pytest

from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment

pytestmark = pytest.mark.cluster


def test_a_node_that_does_not_come_back_halts_the_roll_out(story: Story) -> None:
    hosts = story.nodes(3, change=lambda host: setattr(host, "comes_back", False))
    story.need_reboot(hosts)
    lost = story.any_of(hosts, "Rebooting")
    story.wait_for("it is down", lambda: not lost.up)
    others = [host for host in hosts if host is not lost]
    story.stays(
        "no other node starts", lambda: story.holders() == (lost.name,) and all(not host.reboots for host in others), 15
    )
    for host in others:
        assert story.is_tainted(host)
        assert not story.state(host).unschedulable
        # The command shows what other nodes do. On the Node, that would cost a write of every waiting node.
        why = story.command("why", host.name)
        assert (why.returncode, lost.name in why.stdout) == (0, True), why.stdout
    for host in hosts:
        host.comes_back = True
    story.finishes(hosts)
    story.judge()


def test_a_node_that_is_never_ready_after_its_boot_halts_the_roll_out(story: Story) -> None:
    hosts = story.nodes(2, "--verify-timeout=6s", change=lambda host: setattr(host, "ready_after_seconds", 40.0))
    story.need_reboot(hosts)
    lost = story.any_of(hosts, "Failed")
    (other,) = (host for host in hosts if host is not lost)
    assert lost.name in story.holders()
    assert story.state(lost).labels["careen.dev/reboot"] == "failed"
    assert not other.reboots
    other.ready_after_seconds = 0
    story.wait_for("the node is ready", lambda: story.state(lost).ready)
    assert story.command("retry", lost.name).returncode == 0
    story.finishes(hosts)
    story.judge()


def test_with_concurrency_three_all_waiting_nodes_report_the_failed_node_and_the_remedy(story: Story) -> None:
    hosts = story.nodes(5, "--concurrency=3", "--verify-timeout=6s")
    sick, *others = hosts
    sick.ready_after_seconds = 60.0
    story.need_reboot([sick])
    story.reaches(sick, "Failed")
    story.need_reboot(others)
    story.wait_for(
        "every waiting node reports the failed node",
        lambda: all(f"{sick.name} failed (never-ready)" in story.reason(host) for host in others),
        60,
    )
    story.stays(
        "nobody starts",
        lambda: (
            story.holders() == (sick.name,)
            and all(story.is_tainted(host) and not story.state(host).unschedulable for host in others)
        ),
        15,
    )
    status = story.command("status").stdout
    assert f"No reboot will start: {sick.name} failed (never-ready)" in " ".join(status.split())
    why = story.command("why", others[0].name).stdout
    assert f"careen retry {sick.name}" in why
    assert f"careen lock release {sick.name}" in why
    sick.ready_after_seconds = 0
    story.wait_for("the node is ready", lambda: story.state(sick).ready)
    assert story.command("retry", sick.name).returncode == 0
    story.finishes(hosts)
    story.judge(concurrency=3)


def test_a_host_that_ignores_the_reboot_request_halts_the_roll_out_until_careen_retry(story: Story) -> None:
    hosts = story.nodes(2, "--reboot-deadline=8s")
    for host in hosts:
        host.reboot_ignored()
    story.need_reboot(hosts)
    stuck = story.any_of(hosts, "Failed")
    (other,) = (host for host in hosts if host is not stuck)
    assert stuck.name in story.holders()
    story.stays("no other node starts", lambda: other.failed_requests() == 0 and story.holders() == (stuck.name,), 5)
    for host in hosts:
        host.reboot_works()
    answer = story.command("retry", stuck.name)
    assert answer.returncode == 0, answer.stderr
    story.finishes(hosts)
    story.judge()


def test_waiting_nodes_report_the_rebooting_node_and_when_its_reboot_began(story: Story) -> None:
    """Until the reboot deadline, the waiting nodes report the rebooting node and the time of its reboot. After the
    deadline, the annotations of the rebooting node itself report that the reboot failed.
    """
    stuck, *others = hosts = story.nodes(3, "--reboot-deadline=180s")  # a usual reboot takes a third of it
    stuck.reboot_ignored()
    story.need_reboot([stuck])
    story.wait_for("the host was asked to reboot", lambda: stuck.failed_requests() > 0)
    story.need_reboot(others)
    story.wait_for("all other nodes wait", lambda: all(story.phase(host) == "Waiting" for host in others))
    sentence = f"{stuck.name} was asked to reboot at"
    story.wait_for(
        "every waiting node reports the rebooting node",
        lambda: all(sentence in story.reason(host) for host in others),
        170,
    )
    early = "the reboot deadline passed before the reason of every waiting node mentioned the rebooting node"
    assert story.phase(stuck) == "Rebooting", early
    assert stuck.name in story.command("status").stdout
    assert story.holders() == (stuck.name,)
    stuck.reboot_works()
    story.the_fleet().power_off(stuck)
    story.finishes(hosts, 180)
    story.judge()


def test_a_pod_whose_template_sets_the_node_name_does_not_delay_other_nodes(story: Story) -> None:
    """The scheduler does not place a pod whose template sets the node name. So the controller would recreate this pod
    on the cordoned node for ever."""
    tied, free = hosts = story.nodes(2)
    story.workloads(deployment("tied", 2, nodeName=tied.name), deployment("web", 2))
    story.need_reboot([tied])
    story.wait_for(
        "the node reboots, or reports that it waits because of the pod",
        lambda: "shop/tied" in story.reason(tied) + str(story.refusals(tied)) or tied.reboots,
    )
    story.need_reboot([free])
    story.finishes_one(free)
    assert tied.reboots or not any(seen.unschedulable for seen in story.observer.node_history(tied.name)), (
        "drained for nothing"
    )
    story.admin.delete("/apis/apps/v1/namespaces/shop/deployments/tied", {"propagationPolicy": "Background"})
    story.finishes(hosts)
    story.judge()


def test_a_failing_reboot_command_is_tried_three_times_before_the_drain_is_undone(story: Story) -> None:
    broken, fine = story.nodes(2, "--failure-backoff=1s")
    broken.reboot_fails()
    story.need_reboot([broken, fine])
    story.finishes_one(fine, 120)
    story.wait_for("the reboot command was tried three times", lambda: broken.failed_requests() == 3, 120)
    story.wait_for("the agent has given up", lambda: story.phase(broken) == "Failed" and not story.holders())
    story.stays("the reboot command is not tried again", lambda: broken.failed_requests() == 3, 10)
    assert not story.state(broken).unschedulable
    assert story.holders() == ()
    assert "no reboot today" in story.reason(broken)
    broken.reboot_works()
    assert story.command("retry", broken.name).returncode == 0
    story.finishes([broken])
    story.judge()


def test_a_node_whose_sentinel_file_never_disappears_stops_rebooting_at_the_loop_limit(story: Story) -> None:
    (host,) = story.nodes(1, change=lambda host: setattr(host, "sentinel_survives", True))
    story.need_reboot([host])
    story.wait_for("the node has rebooted twice", lambda: len(host.reboots) == 2)
    story.wait_for(
        "it is reported", lambda: story.phase(host) == "Failed" and "after 2 confirmed reboots" in story.reason(host)
    )
    assert story.holders() == (host.name,)
    story.stays("the node does not reboot again", lambda: len(host.reboots) == 2, 10)
    assert not story.state(host).unschedulable
    host.withdraw()
    story.wait_for(
        "no mark of careen is left once the need has ended", lambda: story.is_home(host) and not story.holders()
    )


def test_a_hold_annotation_that_is_set_during_a_drain_undoes_the_drain(story: Story) -> None:
    (host,) = story.nodes(1)
    story.workloads(deployment("slow", 2, stop_seconds=10))
    story.need_reboot([host])
    story.reaches(host, "Draining")
    assert story.command("hold", host.name, "--reason", "stop").returncode == 0
    story.wait_for(
        "the node is in service again", lambda: not story.state(host).unschedulable and not story.holders(), 30
    )
    assert story.phase(host) == "Waiting"
    assert not host.reboots
    assert story.command("unhold", host.name).returncode == 0
    story.finishes([host])
    story.judge()


def test_a_drain_that_exceeds_its_timeout_is_undone_and_the_next_node_is_drained(story: Story) -> None:
    slow, quick = story.nodes(2, "--drain-timeout=4s", "--failure-backoff=30s")
    story.workloads(deployment("slow", 1, stop_seconds=20, nodeSelector={"kubernetes.io/hostname": slow.name}))
    story.need_reboot([slow, quick])
    story.finishes_one(quick, 90)
    story.wait_for(
        "the drain was undone", lambda: story.phase(slow) == "Failed" and not story.state(slow).unschedulable
    )
    assert "shop/slow-" in story.reason(slow)
    assert not slow.reboots
    story.judge()
