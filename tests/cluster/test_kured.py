"""Tests careen in place of kured and beside it: both formats of kured's lock, and a kured that is still installed."""

from __future__ import annotations

import json

import pytest

from tests.cluster.harness.cluster import CAREEN
from tests.cluster.harness.story import Story

pytestmark = pytest.mark.cluster

CREATED = "2026-01-05T03:14:15.926535897Z"


def single(node: str) -> str:
    """Return the lock in the format that kured writes with concurrency 1."""
    return json.dumps({"nodeID": node, "metadata": {"unschedulable": False}, "created": CREATED, "TTL": 0})


def multiple(*nodes: str) -> str:
    """Return the lock in the format that kured writes with a concurrency greater than 1."""
    entries = [{"nodeID": node, "metadata": {"unschedulable": False}, "created": CREATED, "TTL": 0} for node in nodes]
    return json.dumps({"maxOwners": 2, "locks": entries})


@pytest.mark.parametrize("form", [single, multiple])
def test_a_kured_lock_of_a_deleted_node_is_freed(story: Story, form: object) -> None:
    assert callable(form)
    story.write_lock(form("long-gone"))
    (host,) = story.nodes(1, "--reboot-deadline=10s")
    story.need_reboot([host])
    story.stays("the claim stays in the lock while time passes", lambda: "long-gone" in story.holders(), 8)
    story.finishes([host], 120)
    story.judge()


@pytest.mark.parametrize("form", [single, multiple])
def test_a_node_adopts_the_lock_entry_and_the_cordon_that_kured_left_behind(story: Story, form: object) -> None:
    """careen replaced kured while the node rebooted. The lock says that kured set the cordon."""
    assert callable(form)
    first, _ = hosts = story.nodes_without_agents(2)
    story.cordon(first)
    story.write_lock(form(first.name))
    story.start_agents()
    story.wait_for("the claim is released", lambda: not story.holders(), 60)
    story.need_reboot(hosts)
    story.finishes(hosts, 120)
    story.judge(but=["foreign"])  # the administrator stands in for kured


def test_an_empty_lock_in_kureds_multi_owner_format_is_treated_as_free(story: Story) -> None:
    story.write_lock(json.dumps({"maxOwners": 2, "locks": []}))
    (host,) = story.nodes(1)
    story.need_reboot([host])
    story.finishes([host])


def test_while_kured_is_installed_no_node_reboots_and_each_node_reports_the_reason(story: Story) -> None:
    (host,) = story.nodes(1)
    story.install_kured()
    story.need_reboot([host])
    story.wait_for("it is reported", lambda: "foreign-coordinator" in story.refusals(host), 60)
    assert "kube-system/kured" in story.refusals(host)["foreign-coordinator"]
    assert story.is_tainted(host)
    assert not host.reboots
    story.admin.delete("/apis/apps/v1/namespaces/kube-system/daemonsets/kured")
    story.finishes([host])
    story.judge()


def test_careens_lock_shows_the_rebooting_node_as_the_owner_in_both_formats_of_kured(story: Story) -> None:
    """careen's lock contains both formats of kured: one owner at the top level, and the list of owners."""
    (host,) = story.nodes(1, change=lambda host: setattr(host, "boot_seconds", 5.0))
    story.need_reboot([host])
    story.reaches(host, "Rebooting")
    content = json.loads(story.observer.lock_now().text or "{}")
    assert content["nodeID"] == host.name
    assert content["TTL"] == 0
    assert [entry["nodeID"] for entry in content["locks"]] == [host.name]
    assert all(entry["TTL"] == 0 for entry in content["locks"])
    assert CAREEN.daemonset
    story.finishes([host])
