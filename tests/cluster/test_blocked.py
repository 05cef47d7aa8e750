"""Tests nodes that a gate (a check before the reboot) keeps from rebooting: they get a PreferNoSchedule taint at once,
stay in service, and report the reason."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.machines.prometheus import Prometheus
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import SHOP, bare_pod, budget, deployment, on_node

pytestmark = pytest.mark.cluster


def is_tainted_and_says(story: Story, host: Host, code: str, *words: str, seconds: float = 40) -> None:
    """Wait until the node has careen's taint and its annotations contain this reason code. Check that `careen why`
    shows the reason, and that the node has no cordon and no claim.
    """
    story.wait_for(f"{host.name} is tainted", lambda: story.is_tainted(host), 40)
    story.wait_for(f"{host.name} says {code}", lambda: code in story.refusals(host), seconds)
    sentence = story.refusals(host)[code]
    for word in words:
        assert word in sentence
    assert story.phase(host) == "Waiting"
    assert story.reason(host)
    answer = story.command("why", host.name)
    assert answer.returncode == 0, answer.stderr
    for word in words:
        assert word in answer.stdout
    state = story.state(host)
    # The label "ready" means that the cheap gates of the node pass. It stays while alerts refuse every node.
    assert state.labels["careen.dev/reboot"] in ("required", "ready")
    assert not state.unschedulable
    assert host.name not in story.holders()


def reboots_once_and_leaves_no_mark(story: Story, host: Host) -> None:
    story.finishes([host])
    story.judge()
    story.is_clean(story.hosts.values())
    assert len(host.reboots) == 1


def test_a_blocking_pod_keeps_only_its_own_node_waiting(story: Story) -> None:
    held, free = story.nodes(2, "--blocking-pod-selector=app=backup")
    story.workloads(bare_pod("backup", held.name))
    story.need_reboot([held, free])
    is_tainted_and_says(story, held, "blocking-pod", "shop/backup")
    story.finishes_one(free)
    assert not held.reboots
    story.admin.delete(f"/api/v1/namespaces/{SHOP}/pods/backup")
    reboots_once_and_leaves_no_mark(story, held)


def test_a_firing_alert_keeps_every_node_waiting_until_the_alert_ends(story: Story, prometheus: Prometheus) -> None:
    story.wait_for("Prometheus is ready", prometheus.is_ready)
    prometheus.fire("DiskFull")
    story.wait_for("the alert fires", lambda: prometheus.is_firing("DiskFull"))
    (host,) = story.nodes(1, f"--prometheus-url={prometheus.url}")
    story.need_reboot([host])
    # For three minutes after its start, Prometheus may not know every alert.
    is_tainted_and_says(story, host, "alerts-unknown", "started")
    is_tainted_and_says(story, host, "alert", "DiskFull", seconds=300)
    prometheus.quiet()
    reboots_once_and_leaves_no_mark(story, host)


def test_a_prometheus_that_does_not_answer_keeps_every_node_waiting(story: Story, prometheus: Prometheus) -> None:
    (host,) = story.nodes(1, "--prometheus-url=http://127.0.0.1:9")
    story.need_reboot([host])
    is_tainted_and_says(story, host, "alerts-unknown")


def test_a_changed_maintenance_window_takes_effect_without_a_restart(story: Story) -> None:
    in_three_days = (dt.datetime.now(dt.UTC) + dt.timedelta(days=3)).strftime("%a").lower()[:2]
    story.settings(reboot_days=[in_three_days])
    (host,) = story.nodes(1)
    story.need_reboot([host])
    is_tainted_and_says(story, host, "outside-window")
    story.settings(reboot_days=["mo", "tu", "we", "th", "fr", "sa", "su"])
    reboots_once_and_leaves_no_mark(story, host)
    assert host.starts == 2  # at the beginning and after the boot


def test_a_node_with_a_hold_annotation_waits_until_the_annotation_is_removed(story: Story) -> None:
    (host,) = story.nodes(1)
    assert story.command("hold", host.name, "--reason", "the backup of the year").returncode == 0
    story.need_reboot([host])
    is_tainted_and_says(story, host, "held", "the backup of the year")
    assert f'kured_reboot_required{{node="{host.name}"}} 1.0' in story.metrics(host).splitlines()
    assert story.command("unhold", host.name).returncode == 0
    reboots_once_and_leaves_no_mark(story, host)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_lock_paused_by_a_person_keeps_every_node_waiting_at_any_concurrency(story: Story, concurrency: int) -> None:
    hosts = story.nodes(2, f"--concurrency={concurrency}")
    story.write_lock('{"nodeID": "manual"}')
    story.need_reboot(hosts)
    for host in hosts:
        is_tainted_and_says(story, host, "paused")
    assert story.observer.lock_now().text == '{"nodeID": "manual"}'
    story.write_lock(None)
    story.finishes(hosts)
    story.judge(concurrency=concurrency)


def test_a_node_stays_in_service_if_a_disruption_budget_forbids_the_eviction_of_its_pod(story: Story) -> None:
    stuck, free = story.nodes(2)
    story.workloads(
        deployment("precious", 1, **on_node(stuck.name)),
        deployment("other", 2, **on_node(stuck.name)),
        budget("precious", max_unavailable=0),
    )
    before = {life.uid for life in story.observer.pods()}
    story.need_reboot([stuck, free])
    is_tainted_and_says(story, stuck, "forecast-refuses", "precious")
    story.finishes_one(free)
    assert not stuck.reboots
    assert not any(seen.unschedulable for seen in story.observer.node_history(stuck.name))
    assert {life.uid for life in story.observer.pods()} >= before
    story.apply(budget("precious", max_unavailable=1))
    reboots_once_and_leaves_no_mark(story, stuck)


def test_a_pod_that_fits_on_no_other_node_keeps_its_node_in_service(story: Story) -> None:
    first, second = story.nodes(2)
    story.workloads(deployment("large", 2, cpu="6"))
    story.need_reboot([first])
    is_tainted_and_says(story, first, "forecast-refuses", "large")
    story.admin.patch(f"/apis/apps/v1/namespaces/{SHOP}/deployments/large", {"spec": {"replicas": 1}})
    reboots_once_and_leaves_no_mark(story, first)
    assert not second.reboots


def test_a_node_that_no_longer_needs_a_reboot_loses_every_mark_of_careen(story: Story) -> None:
    (host,) = story.nodes(1)
    story.annotate_node(host, "careen.dev/hold", "not now")
    story.need_reboot([host])
    is_tainted_and_says(story, host, "held")
    host.withdraw()
    story.wait_for("no mark of careen is left", lambda: story.is_home(host), 40)
    assert not host.reboots
