"""Tests `careen cleanup` in the middle of a roll-out: it restores every object that the agents have changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.harness.api import Object
from tests.cluster.harness.cluster import CAREEN, LOCK_ANNOTATION
from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment, on_node

pytestmark = pytest.mark.cluster

LABELS = ("--pre-reboot-node-labels=example.org/state=rebooting", "--post-reboot-node-labels=example.org/state=done")
SETTLED = {"resourceVersion", "managedFields", "generation"}


def marks(node: Object) -> dict[str, Any]:
    """Return the parts of a Node that a client with careen's rights may change."""
    spec = node["spec"]
    return {
        "metadata": {key: value for key, value in node["metadata"].items() if key not in SETTLED},
        "spec": {key: value for key, value in spec.items() if value and key != "taints"},
        "taints": sorted(
            (taint["key"], taint["effect"])
            for taint in spec.get("taints") or []
            if not taint["key"].startswith("node.kubernetes.io/")
        ),
    }


def nodes(story: Story) -> dict[str, dict[str, Any]]:
    return {node["metadata"]["name"]: marks(node) for node in story.admin.list("/api/v1/nodes")}


def lock_of(story: Story) -> str | None:
    annotations = story.admin.get(CAREEN.path)["metadata"].get("annotations") or {}
    return annotations.get(LOCK_ANNOTATION)


def daemon_sets(story: Story) -> set[str]:
    folder, _, _ = CAREEN.path.rpartition("/")
    return {daemon_set["metadata"]["name"] for daemon_set in story.admin.list(folder)}


def agents_stop(story: Story, hosts: list[Host]) -> None:
    for host in hosts:
        host.agent_wanted = False
    story.wait_for("no agent runs", lambda: all(host.agent is None for host in hosts))


def test_careen_cleanup_during_a_roll_out_removes_everything_that_careen_wrote_to_nodes(story: Story) -> None:
    """One node has rebooted, one node drains, one node waits, and a person has cordoned the last node."""
    done, draining, waiting, theirs = hosts = story.nodes_without_agents(4, *LABELS, "--count-cordoned=false")
    story.wait_for("the nodes are there", lambda: len(story.observer.nodes) == len(hosts))
    story.workloads(deployment("slow", 2, stop_seconds=120, **on_node(draining.name)))
    foreign = {"key": "example.org/theirs", "effect": "PreferNoSchedule"}
    for host in hosts:
        story.admin.patch(f"/api/v1/nodes/{host.name}", {"metadata": {"labels": {"example.org/pool": "web"}}})
    story.admin.patch(f"/api/v1/nodes/{draining.name}", {"spec": {"taints": [foreign]}})
    story.admin.patch(f"/api/v1/nodes/{draining.name}", {"metadata": {"labels": {"example.org/state": "before"}}})
    story.cordon(theirs)
    before = nodes(story)

    story.start_agents()
    story.need_reboot([done])
    story.finishes([done])
    story.need_reboot([draining])
    story.reaches(draining, "Draining")
    story.wait_for(
        "the drain has evicted the first pods",
        lambda: any(life.deleting_at for life in story.observer.pods() if life.node == draining.name),
    )
    story.annotate_node(waiting, "careen.dev/hold", "disk swap")
    story.need_reboot([waiting])
    story.reaches(waiting, "Waiting")
    story.wait_for("it is tainted", lambda: story.is_tainted(waiting))
    agents_stop(story, hosts)
    interrupted = nodes(story)
    assert all(interrupted[host.name] != before[host.name] for host in (done, draining, waiting))
    assert draining.name in (lock_of(story) or "")

    # An uninstallation deletes the DaemonSet, and with it the agents and the lock.
    story.admin.delete(CAREEN.path, {"propagationPolicy": "Foreground"})
    story.wait_for("the DaemonSet and its pods are gone", lambda: CAREEN.daemonset not in daemon_sets(story))
    shown = story.command("cleanup")
    assert shown.returncode == 0, shown
    assert nodes(story) == interrupted
    cleaned = story.command("cleanup", "--yes")
    assert cleaned.returncode == 0, cleaned
    assert nodes(story) == before
    again = story.command("cleanup", "--yes")
    assert "No mark was removed." in again.stdout, again


def test_careen_cleanup_needs_an_extra_flag_while_agents_may_run(story: Story) -> None:
    (host,) = story.nodes(1)
    before = nodes(story)
    story.workloads(deployment("slow", 1, stop_seconds=120, **on_node(host.name)))
    story.need_reboot([host])
    story.reaches(host, "Draining")
    host.withdraw()
    agents_stop(story, [host])
    refused = story.command("cleanup", "--yes")
    assert refused.returncode == 1, refused
    assert "1 agent of DaemonSet careen/careen may still run" in refused.stdout + refused.stderr
    done = story.command("cleanup", "--yes", "--even-with-agents")
    assert done.returncode == 0, done
    assert (nodes(story), lock_of(story)) == (before, None)
    # The next agents find a node without a record and a claim.
    story.start_agents()
    assert story.is_home(host)
