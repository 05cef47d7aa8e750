"""Tests an API server, a Node or a DaemonSet that disappears in the middle of a roll-out."""

from __future__ import annotations

import re
import time

import pytest

from tests.cluster.harness.cluster import CAREEN, manifest_files
from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment

pytestmark = pytest.mark.cluster


def start_a_slow_drain(story: Story, hosts: list[Host]) -> Host:
    """Create pods that stop slowly, and let all hosts need a reboot. Return the host that drains first."""
    story.workloads(deployment("slow", 2 * len(hosts), stop_seconds=8))
    story.observer.forget()
    story.need_reboot(hosts)
    holder = story.any_of(hosts, "Draining")
    story.wait_for(
        "the pods of the draining node are being evicted",
        lambda: any(life.deleting_at for life in story.observer.pods() if life.node == holder.name),
    )
    return holder


def test_a_one_minute_outage_of_the_api_server_during_a_drain_breaks_no_rule(story: Story) -> None:
    hosts = story.nodes(3)
    holder = start_a_slow_drain(story, hosts)
    story.plane.stop_api_server()
    time.sleep(60)
    story.plane.start_api_server()
    story.finishes_one(holder, 150)  # controllers and scheduler need some time to continue
    story.finishes(hosts, 180)
    story.judge()
    story.is_clean(hosts)
    assert [len(host.reboots) for host in hosts] == [1, 1, 1]


def test_a_draining_node_that_is_deleted_and_registered_again_finishes_its_reboot(story: Story) -> None:
    hosts = story.nodes(3, "--reboot-deadline=20s")
    holder = start_a_slow_drain(story, hosts)
    story.admin.delete(f"/api/v1/nodes/{holder.name}")
    story.wait_for("the node is gone", lambda: story.observer.node(holder.name) is None)
    story.admin.create("/api/v1/nodes", holder.manifest())
    story.finishes(hosts, 240)
    story.judge()
    story.is_clean(hosts)


def test_a_node_that_is_recreated_during_its_drain_does_not_keep_other_nodes_waiting(story: Story) -> None:
    """The host still runs the same boot, so its agent releases the old claim without waiting for the deadline of 15
    minutes.
    """
    hosts = story.nodes(3)
    holder = start_a_slow_drain(story, hosts)
    story.admin.delete(f"/api/v1/nodes/{holder.name}")
    story.admin.create("/api/v1/nodes", holder.manifest())
    story.wait_for(
        "the claim of the old Node is gone",
        lambda: holder.name not in story.holders() or story.phase(holder) in ("Claiming", "Draining"),
        60,
    )
    story.finishes(hosts, 240)
    story.judge()
    story.is_clean(hosts)
    assert [len(host.reboots) for host in hosts] == [1, 1, 1]


def test_other_nodes_continue_after_a_draining_node_is_deleted(story: Story) -> None:
    hosts = story.nodes(3, "--reboot-deadline=10s")
    holder = start_a_slow_drain(story, hosts)
    holder.agent_wanted = False
    story.the_fleet().kill_agent(holder)
    story.admin.delete(f"/api/v1/nodes/{holder.name}")
    others = [host for host in hosts if host is not holder]
    story.finishes(others, 180)
    assert not holder.reboots
    story.hosts.pop(holder.name)
    story.judge()


@pytest.mark.parametrize("propagation", ["Orphan", "Background"])
def test_a_draining_node_continues_after_the_daemonset_is_deleted_and_recreated(story: Story, propagation: str) -> None:
    hosts = story.nodes(3)
    holder = start_a_slow_drain(story, hosts)
    uid = story.observer.lock_now().uid
    story.admin.delete(CAREEN.path, {"propagationPolicy": propagation})
    story.wait_for("it is gone", lambda: story.admin.find(CAREEN.path) is None)
    for file in manifest_files():
        story.apply_file(file)
    story.wait_for("the observer has seen the new DaemonSet", lambda: story.observer.lock_now().uid not in ("", uid))
    story.wait_for("the holder's claim is in the new lock", lambda: holder.name in story.holders() or holder.reboots)
    story.finishes(hosts, 180)
    story.judge()
    story.is_clean(hosts)
    assert [len(host.reboots) for host in hosts] == [1, 1, 1]


def strip_every_mark(story: Story, host: Host) -> None:
    """Remove careen's annotations, label and taint from the Node, as a person might do. The cordon stays."""
    seen = story.admin.get(f"/api/v1/nodes/{host.name}")
    annotations = {key: None for key in seen["metadata"]["annotations"] if key.startswith("careen.dev/")}
    taints = [taint for taint in seen["spec"].get("taints", []) if not taint["key"].startswith("careen.dev/")]
    labels = {"careen.dev/reboot": None}
    story.admin.patch(
        f"/api/v1/nodes/{host.name}",
        {"metadata": {"annotations": annotations, "labels": labels}, "spec": {"taints": taints}},
    )


def test_careen_uncordons_a_draining_node_that_lost_its_annotations_label_and_taint(story: Story) -> None:
    """Without the marks, only the Node's managed fields show who set the cordon."""
    hosts = story.nodes(3)
    holder = start_a_slow_drain(story, hosts)
    strip_every_mark(story, holder)
    story.finishes(hosts, 240)
    story.is_clean(hosts)
    assert [len(host.reboots) for host in hosts] == [1, 1, 1]


def test_careen_uncordons_a_draining_node_that_lost_its_annotations_and_its_claim(story: Story) -> None:
    hosts = story.nodes(3)
    holder = start_a_slow_drain(story, hosts)
    strip_every_mark(story, holder)
    story.write_lock(None)
    story.finishes(hosts, 240)
    story.is_clean(hosts)
    assert story.events("CordonLifted") or story.events("EntryAdopted"), (
        "an Event must say how the agent recognised its own cordon"
    )


def test_careen_why_reports_who_cordoned_a_node(story: Story) -> None:
    (host,) = story.nodes(1)
    story.cordon(host)
    answer = story.command("why", host.name)
    cordon = rf"^Cordon: (?!.*careen-agent).+ cordoned {host.name} \w+ ago, and careen leaves the node cordoned\.$"
    assert re.search(cordon, answer.stdout, re.MULTILINE)
