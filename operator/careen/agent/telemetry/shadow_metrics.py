"""The metrics of `careen shadow`. Each scrape reads the present results, so metrics and report agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from careen.shadow.outcomes import outcome_of
from careen.shadow.tally import RunCounts
from scheduler_core.values import Value


class Traffic(Value, kw_only=True):
    """What `careen shadow` has received from the API server, and what it keeps in memory."""

    events: int
    bytes: int
    lists: int
    troubled: int
    """Kinds of objects that cannot be watched at the moment."""
    waiting: int
    """Bound pods that have not been compared yet."""
    nodes: int
    pods: int


class ShadowMetrics(Collector):
    """The metrics of one `careen shadow` process."""

    def __init__(self, tally: RunCounts, traffic: Callable[[], Traffic]) -> None:
        self._tally = tally
        self._traffic = traffic
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def exposition(self) -> bytes:
        """What Prometheus scrapes."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        yield self._pods()
        agreement = GaugeMetricFamily(
            "careen_shadow_agreement",
            "The share of compared pods on which scheduler_core and the scheduler agree; absent before the first "
            "comparison.",
        )
        if (share := self._tally.agreement) is not None:
            agreement.add_metric([], share)
            yield agreement
        yield GaugeMetricFamily(
            "careen_shadow_other_configuration",
            "1 while scheduler_core and the scheduler agree so rarely that the scheduler probably has another "
            "configuration.",
            value=float(self._tally.is_too_low),
        )
        yield CounterMetricFamily(
            "careen_shadow_gaps",
            "How often an interrupted watch of pods lost the order of the bindings.",
            value=self._tally.gaps,
        )
        yield from self._of_traffic()

    def _pods(self) -> Metric:
        family = CounterMetricFamily(
            "careen_shadow_pods",
            "Bound pods and unschedulable pods, by outcome (agreed, disagreed, cannot-say) and reason.",
            labels=["profile", "outcome", "reason"],
        )
        for (profile, reason), count in sorted(self._tally.counts.copy().items()):
            family.add_metric([profile, outcome_of(reason).value, reason.value], count)
        return family

    def _of_traffic(self) -> Iterator[Metric]:
        traffic = self._traffic()
        yield CounterMetricFamily("careen_shadow_events", "Watch events received.", value=traffic.events)
        yield CounterMetricFamily("careen_shadow_event_bytes", "Bytes received in watch events.", value=traffic.bytes)
        yield CounterMetricFamily(
            "careen_shadow_lists", "Complete lists received, each with all objects of one kind.", value=traffic.lists
        )
        yield GaugeMetricFamily(
            "careen_shadow_troubled_kinds",
            "Kinds of objects that cannot be watched at the moment.",
            value=traffic.troubled,
        )
        yield GaugeMetricFamily(
            "careen_shadow_waiting", "Bound pods that have not been compared yet.", value=traffic.waiting
        )
        yield GaugeMetricFamily("careen_shadow_nodes", "Nodes in memory.", value=traffic.nodes)
        yield GaugeMetricFamily("careen_shadow_pods_in_memory", "Pods in memory.", value=traffic.pods)
