"""How attempts are counted under kube-scheduler's names."""

from __future__ import annotations

import pytest

from careen.scheduler.metrics import SchedulerMetrics
from scheduler_core import Scheduler, Snapshot, node_from_manifest, pod_from_manifest
from scheduler_core.cycle_result import CycleResult
from scheduler_core.running.commands import Count
from scheduler_core.running.machine import Attempt, Machine
from scheduler_core.values import replace_value

POD = pod_from_manifest({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
NODE = node_from_manifest({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}})
EMPTY = Snapshot.of([])
NO_NODE = Scheduler().schedule(EMPTY, POD)


def test_a_scrape_shows_the_queue_the_lease_and_the_writes() -> None:
    metrics = SchedulerMetrics()
    machine = Machine(Scheduler(), awaits=())
    machine.parts.queue.add(POD, 0.0)
    queued = machine.parts.queue.pop()
    assert queued is not None
    machine.parts.queue.add_unschedulable(queued, 0.0, refused_by=["NodeResourcesFit"])
    metrics.show(machine)
    metrics.elects("careen-scheduler", lambda: True)
    metrics.requested("POST", "10.0.0.1:443", 201)
    metrics.requested("POST", "10.0.0.1:443", 0)
    metrics.counted(Count(metric="permit_wait_duration_seconds", label="Success", amount=3.0))
    assert {
        'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 1.0',
        'scheduler_queue_incoming_pods_total{event="ScheduleAttemptFailure",queue="unschedulable"} 1.0',
        'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1.0',
        'scheduler_inflight_events{event="PodPopped"} 0.0',
        'leader_election_master_status{name="careen-scheduler"} 1.0',
        'rest_client_requests_total{code="201",host="10.0.0.1:443",method="POST"} 1.0',
        'rest_client_requests_total{code="<error>",host="10.0.0.1:443",method="POST"} 1.0',
        'scheduler_permit_wait_duration_seconds_sum{result="Success"} 3.0',
        'scheduler_cache_size{type="nodes"} 0.0',
    } <= set(metrics.exposition().decode().splitlines())


@pytest.mark.parametrize(
    ("result", "is_error", "outcome"),
    [
        pytest.param(Scheduler().schedule(Snapshot.of([NODE]), POD), False, "scheduled", id="a node"),
        pytest.param(NO_NODE, False, "unschedulable", id="no node"),
        pytest.param(replace_value(NO_NODE, error="boom"), False, "error", id="a plugin's error"),
        pytest.param(None, True, "error", id="a plugin that raised"),
        pytest.param(None, False, "unschedulable", id="left pending without a cycle"),
    ],
)
def test_an_attempt_is_counted_by_its_outcome(result: CycleResult | None, is_error: bool, outcome: str) -> None:
    metrics = SchedulerMetrics()
    metrics.attempted(Attempt(pod=POD, at=0.0, snapshot=EMPTY, nominated={}, result=result, is_error=is_error))
    metrics.took(0.01)
    metrics.took(0.01)  # a step without an attempt
    labels = f'profile="default-scheduler",result="{outcome}"'
    assert f"scheduler_schedule_attempts_total{{{labels}}} 1.0" in metrics.exposition().decode()
