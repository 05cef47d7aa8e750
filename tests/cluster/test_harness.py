"""Tests the test harness: hosts that reboot, a control plane that restarts, and an observer that records them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.harness.cluster import CAREEN, Cluster, manifest_files
from tests.cluster.harness.machines.control_plane import ControlPlane
from tests.cluster.harness.machines.hosts import Host, Launch
from tests.cluster.harness.rules import broken, journal_of
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import bare_pod, deployment, path_of

pytestmark = pytest.mark.cluster

# An agent without claim and cordon: it reboots whenever the sentinel exists.
RUDE = 'while :; do [ -e "$1" ] && { "$2"; sleep 60; }; sleep 0.1; done'


def rude_agent(host: Host, token: str) -> Launch:
    return Launch(
        argv=("sh", "-c", RUDE, "sh", str(host.sentinel), str(host.reboot_command)), env={"PATH": "/usr/bin:/bin"}
    )


@pytest.fixture
def cluster(story: Story, plane: ControlPlane, tmp_path: Path) -> Cluster:
    story.start_fleet([Host(name="n00", zone="zone-a", folder=tmp_path / "n00", boot_seconds=1.5)], rude_agent)
    story.wait_for("the agent runs", story.agents_run)
    return story


def test_a_rebooting_host_is_unready_and_gets_a_new_boot_id(cluster: Cluster) -> None:
    assert cluster.fleet is not None
    host = cluster.fleet.hosts["n00"]
    left = host.boot_id
    host.ask_for_reboot()
    cluster.wait_for("it is down", lambda: not cluster.observer.node("n00").ready)
    cluster.wait_for("it is back", lambda: cluster.observer.node("n00").ready)
    time.sleep(3)  # kwok, if it were to repair the node, would do so in this time
    state = cluster.observer.node("n00")
    assert (state.ready, state.boot_id, len(host.reboots)) == (True, host.boot_id, 1)
    assert host.boot_id != left
    assert host.reboots[0].boot_left == left
    assert not host.sentinel.exists()


def test_the_rules_report_an_agent_that_reboots_its_node_without_claim_and_cordon(
    cluster: Cluster, plane: ControlPlane
) -> None:
    assert cluster.fleet is not None
    host = cluster.fleet.hosts["n00"]
    host.ask_for_reboot()
    cluster.wait_for("it has rebooted", lambda: host.reboots and host.up)
    time.sleep(1)  # the audit log is written a moment later
    audit = plane.audit_events(cluster.journal_from)
    found = broken(journal_of(audit, cluster.fleet.hosts, cluster.identity, concurrency=1))
    assert {sentence.partition(":")[0] for sentence in found} == {"claim", "reboot", "cordoned"}


def test_pods_are_ready_again_after_the_reboot_of_their_host(cluster: Cluster) -> None:
    assert cluster.fleet is not None
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, deployment("web", 2))
    cluster.wait_for("the pods are ready", cluster.pods_are_ready)
    before = {life.uid for life in cluster.observer.pods()}
    cluster.fleet.hosts["n00"].ask_for_reboot()
    cluster.wait_for("the pods were not ready", lambda: not cluster.pods_are_ready())
    cluster.wait_for("the pods are ready again", cluster.pods_are_ready)
    assert {life.uid for life in cluster.observer.pods()} == before


def test_the_observer_continues_after_an_outage_of_the_api_server(cluster: Cluster, plane: ControlPlane) -> None:
    plane.stop_api_server()
    time.sleep(1)
    plane.start_api_server()
    cluster.admin.patch("/api/v1/nodes/n00", {"spec": {"unschedulable": True}})
    cluster.wait_for("the observer has seen the cordon", lambda: cluster.observer.node("n00").unschedulable)
    assert sum(seen.unschedulable for seen in cluster.observer.node_history("n00")) == 1


def test_an_agents_token_contains_its_nodes_name_and_is_invalid_after_its_pod_is_deleted(
    cluster: Cluster, plane: ControlPlane
) -> None:
    assert cluster.fleet is not None
    host = cluster.fleet.hosts["n00"]
    token = plane.service_account_token(
        CAREEN.namespace,
        CAREEN.account,
        {"apiVersion": "v1", "kind": "Pod", "name": host.agent_pod_name, "uid": host.agent_pod},
    )
    api = plane.client(token)
    review = api.create(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    assert review["status"]["userInfo"]["username"] == CAREEN.user
    assert review["status"]["userInfo"]["extra"]["authentication.kubernetes.io/node-name"] == ["n00"]
    api.close()


def test_the_manifests_of_the_repository_are_applied_unchanged() -> None:
    assert [file.name for file in manifest_files()][:2] == ["namespace.yaml", "rbac.yaml"]


def test_the_sweep_deletes_a_pod_that_a_controller_creates_late(
    story: Story, plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector deletes the late pod too, but waits for the kubelet of a node that no longer exists."""
    story.workloads()
    wait_for = story.wait_for

    def wait_after_a_late_pod(sentence: str, condition: Callable[[], bool]) -> bool:
        condition()
        late = bare_pod("late", "n00")
        story.apply(late)
        plane.admin.delete(f"{path_of(late)}/late")
        assert plane.admin.get(f"{path_of(late)}/late")["metadata"]["deletionTimestamp"]
        return wait_for(sentence, condition, 10)

    monkeypatch.setattr(story, "wait_for", wait_after_a_late_pod)
    story.sweep()
    assert plane.admin.list("/api/v1/pods") == []
