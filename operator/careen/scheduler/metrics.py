"""Metrics under the names and with the buckets of kube-scheduler (pkg/scheduler/metrics/metrics.go, v1.36), so that
existing dashboards and alerts work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from scheduler_core.running.commands import Count
from scheduler_core.running.machine import Attempt, Machine

_FAST: Final = tuple(0.001 * 2**power for power in range(15))
_SLI: Final = tuple(0.01 * 2**power for power in range(20))
_ATTEMPTS: Final = (1, 2, 4, 8, 16)
_VICTIMS: Final = (1, 2, 4, 8, 16, 32, 64)


class SchedulerMetrics(Collector):
    """Of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)
        self._gauges = dict.fromkeys(("active", "backoff", "unschedulable", "gated"), 0)
        self._sizes = dict.fromkeys(("nodes", "pods", "assumed_pods"), 0)
        self._attempt: Attempt | None = None
        self._tried = Counter(
            "scheduler_schedule_attempts", "Tries to place a pod.", ["result", "profile"], registry=self._registry
        )
        self._seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "A cycle with everything before the binding.",
            ["result", "profile"],
            buckets=_FAST,
            registry=self._registry,
        )
        self._algorithm = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "A cycle.",
            buckets=_FAST,
            registry=self._registry,
        )
        self._sli = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From the pod's first entry into the queue until it was bound.",
            ["attempts"],
            buckets=_SLI,
            registry=self._registry,
        )
        self._attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Tries of a pod that was bound.",
            buckets=_ATTEMPTS,
            registry=self._registry,
        )
        self._preemptions = Counter(
            "scheduler_preemption_attempts", "Preemptions that chose victims.", registry=self._registry
        )
        self._victims = Histogram(
            "scheduler_preemption_victims", "Victims of a preemption.", buckets=_VICTIMS, registry=self._registry
        )

    def show(self, machine: Machine) -> None:
        """Keeps the sizes of queue and cache for the next scrapes, which come from another thread."""
        self._gauges = dict(machine.parts.queue.sizes())
        sizes = machine.parts.cache.sizes()
        self._sizes = {
            "nodes": sizes["nodes"],
            "pods": sizes["pods"],
            "assumed_pods": len(machine.parts.bindings),
        }

    def exposition(self) -> bytes:
        """What Prometheus scrapes."""
        return generate_latest(self._registry)

    # ---- calls of the pump ----

    def attempted(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def took(self, seconds: float) -> None:
        """The machine's last step."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        profile = attempt.pod.spec.scheduler_name
        result = attempt.outcome
        self._tried.labels(result, profile).inc()
        self._seconds.labels(result, profile).observe(seconds)
        self._algorithm.observe(seconds)

    def counted(self, count: Count) -> None:
        if count.metric == "preemption_attempts_total":
            self._preemptions.inc()
        elif count.metric == "preemption_victims":
            self._victims.observe(count.amount)
        elif count.metric == "pod_scheduling_attempts":
            self._attempts.observe(count.amount)
        elif count.metric == "pod_scheduling_sli_duration_seconds":
            self._sli.labels(count.label).observe(count.amount)

    # ---- a call of the registry ----

    def collect(self) -> Iterator[Metric]:
        pending = GaugeMetricFamily("scheduler_pending_pods", "Pods that wait for a node.", labels=["queue"])
        for name, number in self._gauges.items():
            pending.add_metric([name], number)
        yield pending
        size = GaugeMetricFamily("scheduler_scheduler_cache_size", "What the cache holds.", labels=["type"])
        for name, number in self._sizes.items():
            size.add_metric([name], number)
        yield size
        yield GaugeMetricFamily("scheduler_goroutines", "Threads.", value=threading.active_count())
