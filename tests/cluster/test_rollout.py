"""Tests that a fleet reboots: one node after another, or several at once within a budget."""

from __future__ import annotations

import time

import pytest

from tests.cluster.harness.measures.figures import down_spans, most_at_once
from tests.cluster.harness.observer import as_json
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import (
    apart_from_its_like,
    budget,
    daemon_set,
    deployment,
    stateful_set,
    zone_spread,
)

pytestmark = pytest.mark.cluster

SHOP = (
    daemon_set("log-shipper", cpu="100m"),
    deployment("web", 12, cpu="1", **zone_spread("web")),
    budget("web", max_unavailable=2),
    deployment("cache", 6, cpu="1500m", **apart_from_its_like("cache")),
    budget("cache", max_unavailable=1),
    stateful_set("db", 3, cpu="2", **apart_from_its_like("db")),
    budget("db", max_unavailable=1),
    deployment("worker", 15, cpu="1"),
)


def test_twelve_nodes_reboot_one_after_another_and_workloads_stay_available(story: Story) -> None:
    hosts = story.nodes(12)
    story.workloads(*SHOP)
    story.observer.forget()
    story.need_reboot(hosts)
    story.wait_for("every node is tainted", lambda: all(story.is_tainted(host) or host.reboots for host in hosts))
    story.finishes(hosts, 400)
    story.judge(concurrency=1)
    story.is_clean(hosts)
    for host in hosts:
        assert len(host.reboots) == 1
        report = as_json(story.state(host).annotations["careen.dev/last-reboot"])
        assert host.reboots[0].boot_left in report.values()
        assert host.reboots[0].boot in report.values()
        tainted_before_cordon(story, host.name)
    assert {event["involvedObject"]["name"] for event in story.events("Rebooted")} == {host.name for host in hosts}
    assert story.forbidden() == []
    assert story.requests().by_verb.keys() <= {"get", "list", "watch", "patch", "create"}
    story.wait_for("every workload has all its pods again", story.pods_are_ready)


def tainted_before_cordon(story: Story, name: str) -> None:
    """Check that the node had careen's PreferNoSchedule taint before its cordon."""
    history = story.observer.node_history(name)
    cordon = next(seen for seen in history if seen.unschedulable)
    before = [seen for seen in history if seen.at < cordon.at]
    assert ("careen.dev/reboot", "PreferNoSchedule") in before[-1].taints, f"{name} was cordoned before it was tainted"


def test_a_zone_budget_of_one_never_lets_two_nodes_of_a_zone_be_down_together(story: Story) -> None:
    hosts = story.nodes(9, "--concurrency=3", "--budget=zone=1")
    story.workloads(deployment("web", 9, cpu="500m"))
    story.observer.forget()
    story.need_reboot(hosts)
    story.finishes(hosts, 300)
    story.judge(concurrency=3, groups={host.name: {host.zone: 1} for host in hosts})
    assert (
        most_at_once(span for host in hosts for span in down_spans(story.observer.node_history(host.name), time.time()))
        > 1
    )


def test_a_node_that_is_not_ready_uses_up_the_budget_of_its_zone(story: Story) -> None:
    dead, same_zone, other_zone = story.nodes(
        3, "--concurrency=2", "--budget=zone=1", zones=2, change=lambda host: setattr(host, "boot_seconds", 600)
    )
    for host in (same_zone, other_zone):
        host.boot_seconds = 2
    same_zone, other_zone = (other_zone, same_zone) if same_zone.zone != dead.zone else (same_zone, other_zone)
    story.the_fleet().power_off(dead)
    story.wait_for("it is down", lambda: not story.state(dead).ready)
    story.need_reboot([same_zone, other_zone])
    story.finishes_one(other_zone)
    story.wait_for(
        "the other node of the zone reports why it waits", lambda: "budget-spent" in story.refusals(same_zone)
    )
    assert dead.name in story.refusals(same_zone)["budget-spent"]
    assert not same_zone.reboots


def test_a_cordon_set_by_a_person_survives_the_reboot(story: Story) -> None:
    hosts = story.nodes(2)
    story.cordon(hosts[0])
    story.need_reboot(hosts[:1])
    story.wait_for(
        "it has rebooted",
        lambda: hosts[0].reboots and hosts[0].up and not story.holders() and story.phase(hosts[0]) == "Idle",
    )
    assert story.state(hosts[0]).unschedulable
    story.judge()


def test_the_only_node_of_a_cluster_reboots_although_its_pods_fit_nowhere_else(story: Story) -> None:
    (host,) = story.nodes(1)
    story.workloads(deployment("web", 2))
    story.need_reboot([host])
    story.finishes([host])
    story.judge()
    story.wait_for("every pod is ready again", story.pods_are_ready)
