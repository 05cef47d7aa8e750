"""Metrics under the names and with the buckets of kube-scheduler (pkg/scheduler/metrics/metrics.go, v1.36), so that
existing dashboards and alerts work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from careen.scheduler.measures import Distribution, LabelledCounter, Measures
from scheduler_core.cache.changes import Change
from scheduler_core.running.commands import Count
from scheduler_core.running.machine import Attempt, Machine

_FAST: Final = tuple(0.001 * 2**power for power in range(15))
_SLI: Final = tuple(0.01 * 2**power for power in range(20))
_ATTEMPTS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
_VICTIMS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class SchedulerMetrics(Collector):
    """Of one process."""

    def __init__(self, measures: Measures | None = None) -> None:
        """`measures`: of extension points, plugins and events."""
        self.measures = measures
        self._changes: list[Change] = []
        self._handled: list[tuple[list[Change], float]] = []  # until `show`: between two pods, caches are cold
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)
        self._gauges = dict.fromkeys(("active", "backoff", "unschedulable", "gated"), 0)
        self._sizes = dict.fromkeys(("nodes", "pods", "assumed_pods"), 0)
        self._incoming: Mapping[tuple[str, str], int] = {}
        self._refusals: Mapping[tuple[str, str], int] = {}
        self._in_flight: Mapping[str, int] = {}
        self._leads: Callable[[], bool] | None = None
        self._lease = ""
        self._attempt: Attempt | None = None
        self._tried = LabelledCounter("scheduler_schedule_attempts", "Tries to place a pod.", ("result", "profile"))
        self._seconds = Distribution(
            "scheduler_scheduling_attempt_duration_seconds",
            "A cycle with everything before the binding.",
            ("result", "profile"),
            _FAST,
        )
        self._algorithm = Distribution("scheduler_scheduling_algorithm_duration_seconds", "A cycle.", (), _FAST)
        self._sli = Distribution(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From the pod's first entry into the queue until it was bound.",
            ("attempts",),
            _SLI,
        )
        self._attempts = Distribution(
            "scheduler_pod_scheduling_attempts", "Tries of a pod that was bound.", (), _ATTEMPTS
        )
        self._preemptions = LabelledCounter("scheduler_preemption_attempts", "Cycles in which DefaultPreemption ran.")
        self._permits = Distribution(
            "scheduler_permit_wait_duration_seconds", "How long a pod waited for Permit plugins.", ("result",), _FAST
        )
        self._switched_off = LabelledCounter(
            "scheduler_plugins_switched_off",
            "Plugins that only score and raised three times in a row. kube-scheduler has no such metric.",
            ("plugin",),
        )
        self._requests = LabelledCounter("rest_client_requests", "Writes, by the answer.", ("code", "method", "host"))
        self._victims = Distribution("scheduler_preemption_victims", "Victims of a preemption.", (), _VICTIMS)

    def show(self, machine: Machine) -> None:
        """Keeps the sizes of queue and cache for the next scrapes, which come from another thread."""
        queue = machine.parts.queue
        self._gauges = dict(queue.sizes())
        self._incoming, self._refusals, self._in_flight = dict(queue.incoming), queue.refusals(), queue.events_kept()
        sizes = machine.parts.cache.sizes()
        self._sizes = {
            "nodes": sizes["nodes"],
            "pods": sizes["pods"],
            "assumed_pods": len(machine.parts.bindings),
        }
        handled, self._handled = self._handled, []
        if self.measures is not None:
            for changes, seconds in handled:
                self.measures.handled(changes, seconds)
            self.measures.sum_up(machine.parts.scheduler)

    def elects(self, lease: str, is_leader: Callable[[], bool]) -> None:
        """`lease`: its name. `is_leader` is asked at each scrape."""
        self._lease, self._leads = lease, is_leader

    def exposition(self) -> bytes:
        """What Prometheus scrapes."""
        return generate_latest(self._registry)

    # ---- calls of the pump ----

    def attempted(self, attempt: Attempt) -> None:
        self._attempt = attempt
        if self.measures is not None and attempt.result is not None:
            self.measures.attempted(attempt.pod.spec.scheduler_name, attempt.result)

    def changed(self, change: Change) -> None:
        self._changes.append(change)

    def handled(self, seconds: float) -> None:
        """The machine took an event."""
        self._handled.append((self._changes, seconds))
        self._changes = []

    def took(self, seconds: float) -> None:
        """The machine's last step."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        profile = attempt.pod.spec.scheduler_name
        result = attempt.outcome
        if attempt.began is not None:  # earlier, if an extender or a plugin was asked beside the machine
            seconds += attempt.at - attempt.began
        self._tried.count((result, profile))
        self._seconds.observe((result, profile), seconds)
        self._algorithm.observe((), seconds)

    def counted(self, count: Count) -> None:
        if count.metric == "pod_scheduling_attempts":
            self._attempts.observe((), count.amount)
        elif count.metric == "pod_scheduling_sli_duration_seconds":
            self._sli.observe((count.label,), count.amount)
        elif count.metric == "preemption_attempts_total":
            self._preemptions.count()
        elif count.metric == "preemption_victims":
            self._victims.observe((), count.amount)
        elif count.metric == "permit_wait_duration_seconds":
            self._permits.observe((count.label,), count.amount)
        elif count.metric == "plugins_switched_off_total":
            self._switched_off.count((count.label,))

    def requested(self, method: str, host: str, status: int) -> None:
        """A write was answered; status 0 without an answer."""
        self._requests.count((str(status) if status else "<error>", method, host))

    # ---- a call of the registry ----

    def collect(self) -> Iterator[Metric]:
        pending = GaugeMetricFamily("scheduler_pending_pods", "Pods that wait for a node.", labels=["queue"])
        for name, number in self._gauges.items():
            pending.add_metric([name], number)
        yield pending
        size = GaugeMetricFamily("scheduler_cache_size", "What the cache holds.", labels=["type"])
        for name, number in self._sizes.items():
            size.add_metric([name], number)
        yield size
        binding = GaugeMetricFamily("scheduler_goroutines", "Pods whose binding goes on.", labels=["operation"])
        binding.add_metric(["binding"], self._sizes["assumed_pods"])
        yield binding
        incoming = CounterMetricFamily(
            "scheduler_queue_incoming_pods", "Pods that came into a part of the queue.", labels=["queue", "event"]
        )
        for labels, number in self._incoming.items():
            incoming.add_metric(labels, number)
        yield incoming
        refused = GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "Pods in the queue that this plugin refused; a pod counts once for each plugin.",
            labels=["plugin", "profile"],
        )
        for labels, number in self._refusals.items():
            refused.add_metric(labels, number)
        yield refused
        kept = GaugeMetricFamily(
            "scheduler_inflight_events", "Events kept for pods whose attempt has not ended.", labels=["event"]
        )
        for event, number in self._in_flight.items():
            kept.add_metric([event], number)
        yield kept
        if self._leads is not None:
            leads = GaugeMetricFamily(
                "leader_election_master_status", "1 if this process holds the Lease.", labels=["name"]
            )
            leads.add_metric([self._lease], float(self._leads()))
            yield leads
        for each in (
            self._tried,
            self._seconds,
            self._algorithm,
            self._sli,
            self._attempts,
            self._preemptions,
            self._permits,
            self._switched_off,
            self._requests,
            self._victims,
        ):
            yield each.family()
        if self.measures is not None:
            yield from self.measures.collect()
