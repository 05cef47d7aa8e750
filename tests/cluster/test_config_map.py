"""Tests a ConfigMap that is deleted, recreated or invalid at the worst moment. The current settings stay, and the agent
reports the problem.
"""

from __future__ import annotations

import datetime as dt

import pytest

from tests.cluster.harness.cluster import CAREEN, manifest_files
from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.story import Story

pytestmark = pytest.mark.cluster

PATH = f"/api/v1/namespaces/{CAREEN.namespace}/configmaps"
EVERY_DAY = ["mo", "tu", "we", "th", "fr", "sa", "su"]


def closed_today() -> list[str]:
    return [(dt.datetime.now(dt.UTC) + dt.timedelta(days=3)).strftime("%a").lower()[:2]]


def says(story: Story, host: Host, line: str) -> bool:
    return any(each.startswith(line) for each in story.metrics(host).splitlines())


def test_deleting_and_restoring_the_config_map_does_not_open_a_closed_window(story: Story) -> None:
    """Many GitOps tools delete and create the ConfigMap, as `kubectl replace --force` does."""
    story.settings(reboot_days=closed_today())
    hosts = story.nodes(2)
    story.need_reboot(hosts)
    story.wait_for(
        "both nodes wait for the window", lambda: all("outside-window" in story.refusals(host) for host in hosts)
    )
    before = story.admin.get(f"{PATH}/careen")
    story.admin.delete(f"{PATH}/careen")
    story.stays("no node starts", lambda: not story.holders() and not any(host.reboots for host in hosts), 15)
    story.wait_for(
        "it is reported",
        lambda: all(says(story, host, f'careen_config_ok{{node="{host.name}"}} 0.0') for host in hosts),
    )
    found = story.admin.list(f"/api/v1/namespaces/{CAREEN.namespace}/events")
    assert [
        event
        for event in found
        if event["involvedObject"]["name"] in ("careen", *(host.name for host in hosts)) and event["type"] == "Warning"
    ]
    again = {key: before[key] for key in ("apiVersion", "kind", "data")} | {
        "metadata": {"name": "careen", "namespace": CAREEN.namespace}
    }
    story.admin.create(PATH, again)
    story.stays(
        "no node starts after the ConfigMap was created again",
        lambda: not story.holders() and not any(host.reboots for host in hosts),
        5,
    )
    story.wait_for(
        "all is well", lambda: all(says(story, host, f'careen_config_ok{{node="{host.name}"}} 1.0') for host in hosts)
    )
    story.settings(reboot_days=EVERY_DAY)
    story.finishes(hosts)
    story.judge()


def test_an_empty_config_map_restores_the_defaults_of_its_settings(story: Story) -> None:
    """An empty ConfigMap was written on purpose. A missing ConfigMap may be a mistake, so it changes no setting."""
    story.settings(reboot_days=closed_today())
    (host,) = story.nodes(1)
    story.need_reboot([host])
    story.wait_for("the node waits for the window", lambda: "outside-window" in story.refusals(host))
    story.admin.patch(f"{PATH}/careen", {"data": None})
    story.finishes([host])
    story.judge()


def is_down_for_its_reboot(story: Story, hosts: list[Host]) -> Host:
    story.need_reboot(hosts)
    found = story.any_of(hosts, "Rebooting")
    story.wait_for("it is down", lambda: not found.up)
    return found


def test_a_rebooted_node_returns_to_service_despite_an_invalid_config_map(story: Story) -> None:
    story.settings(reboot_days=EVERY_DAY, lock_release_delay="1s")
    hosts = story.nodes(2, change=lambda host: setattr(host, "boot_seconds", 8.0))
    first = is_down_for_its_reboot(story, hosts)
    story.settings(reboot_days=["someday"], no_such_setting=1)
    story.finishes_one(first, 90)
    story.wait_for(
        "it is reported", lambda: says(story, first, f'careen_config_ok{{node="{first.name}"}} 0.0') or first.crashes
    )
    story.settings(reboot_days=EVERY_DAY)
    story.finishes(hosts)
    for host in hosts:
        host.crashes = [
            each for each in host.crashes if each[1] != 2
        ]  # without a claim, an agent that starts with a wrong setting may exit
    story.judge()


def test_the_agent_of_a_rebooted_node_starts_even_if_the_daemonset_is_missing(story: Story) -> None:
    """The DaemonSet is deleted with `--cascade=orphan`. The DaemonSet's pods stay, and the kubelet starts them again
    after the boot.
    """
    (host,) = story.nodes(1, change=lambda host: setattr(host, "boot_seconds", 8.0))
    is_down_for_its_reboot(story, [host])
    story.admin.delete(CAREEN.path, {"propagationPolicy": "Orphan"})
    starts = host.starts
    story.wait_for("the agent has started again", lambda: host.starts > starts)
    story.stays("the agent continues", lambda: not host.crashes, 8)
    for file in manifest_files():
        story.apply_file(file)
    story.finishes([host])
    story.judge()
