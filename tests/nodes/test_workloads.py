"""Tests pods as in real clusters: pods that stop slowly, static pods, DaemonSet pods with OnDelete, pods with hostPath
volumes.
"""

from __future__ import annotations

import pytest

from tests.cluster.harness.workloads import SHOP, daemon_set, deployment, on_node, stateful_set
from tests.nodes.harness.story import Story
from tests.nodes.harness.workloads import before_stop, container

pytestmark = pytest.mark.cluster

_STATIC = """
apiVersion: v1
kind: Pod
metadata: {name: proxy, namespace: shop}
spec:
  containers: [{name: app, image: "example.com/app:1"}]
"""


def test_with_concurrency_two_at_most_two_nodes_are_down_and_no_budget_is_broken(story: Story) -> None:
    story.workloads()
    story.install(concurrency=2)
    story.want_reboot()
    story.finishes()
    assert max(len(lock.holders) for lock in story.observer.seen.locks) == 2
    story.judge(concurrency=2)


def test_a_drain_waits_for_a_pre_stop_hook_of_forty_seconds(story: Story) -> None:
    machine = story.machines[0]
    slow = deployment("slow", 1, containers=[before_stop(40)], grace_seconds=60, **on_node(machine.name))
    story.workloads(slow)
    story.install()
    story.want_reboot([machine])
    story.finishes(machine)
    story.judge(machine)
    first = min(
        (one for one in story.observer.seen.pods.values() if one.owner == "Deployment/slow"),
        key=lambda one: one.created_at,
    )
    assert first.deleting_at is not None
    assert first.gone_at is not None
    assert first.gone_at - first.deleting_at >= 39  # the hook's duration without the watch's possible delay


def test_static_pods_and_pods_of_an_on_delete_daemonset_stay_on_the_node(story: Story) -> None:
    machine = story.machines[0]
    shipper = daemon_set("log-shipper")
    shipper["spec"]["updateStrategy"] = {"type": "OnDelete"}
    story.workloads(shipper)
    machine.run("sh", "-c", f"cat > /etc/lab/static/story.yaml <<'E'\n{_STATIC}\nE")
    story.install()
    story.wait_for("the static pod runs", lambda: pods_on(story, machine.name, "proxy-"))
    before = pods_on(story, machine.name, "proxy-") | pods_on(story, machine.name, "log-shipper-")
    story.want_reboot([machine])
    story.finishes(machine)
    after = pods_on(story, machine.name, "log-shipper-")
    assert after <= before
    assert after
    assert not any(life.evicted for life in story.observer.seen.pods.values() if life.uid in before)
    story.judge(machine)


def test_a_stateful_set_with_host_path_volumes_moves_to_another_node(story: Story) -> None:
    volume = {"name": "data", "hostPath": {"path": "/var/lib/shop", "type": "DirectoryOrCreate"}}
    mounted = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    story.workloads(stateful_set("db", 2, containers=[mounted], volumes=[volume]))
    story.install()
    story.want_reboot()
    story.finishes()
    story.judge()


def pods_on(story: Story, node: str, prefix: str) -> set[str]:
    """Find this node's pods in the namespace shop whose names begin with `prefix`. Return their uids."""
    lives = story.observer.pods()
    return {life.uid for life in lives if life.namespace == SHOP and life.node == node and life.name.startswith(prefix)}
