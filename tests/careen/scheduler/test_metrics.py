"""How attempts are counted under kube-scheduler's names."""

from __future__ import annotations

import pytest

from careen.scheduler.metrics import SchedulerMetrics
from scheduler_core import Scheduler, Snapshot, node_from_manifest, pod_from_manifest
from scheduler_core.cycle_result import CycleResult
from scheduler_core.running.machine import Attempt
from scheduler_core.values import replace_value

POD = pod_from_manifest({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
NODE = node_from_manifest({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}})
EMPTY = Snapshot.of([])
NO_NODE = Scheduler().schedule(EMPTY, POD)


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
