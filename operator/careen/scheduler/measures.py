"""kube-scheduler's metrics about extension points, plugins and events (pkg/scheduler/metrics/metrics.go, v1.36)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric

from scheduler_core.cache.changes import Change
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.queue.events import Resource
from scheduler_core.queue.hints.changes import node_changes
from scheduler_core.running.timed import timed

_SAMPLED: Final = 0.1
"""Of all cycles, as in kube-scheduler: in these each call of a plugin is timed."""
_POINTS: Final = tuple(0.0001 * 2**power for power in range(12))
_PLUGINS: Final = tuple(0.00001 * 1.5**power for power in range(20))


class LabelledCounter:
    """A counter. prometheus_client's takes a lock and two of its objects each time, and each pod counts five."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...] = ()) -> None:
        self._family = partial(CounterMetricFamily, name, text, labels=labels)
        self._rows: Counter[tuple[str, ...]] = Counter() if labels else Counter({(): 0})

    def count(self, labels: tuple[str, ...] = ()) -> None:
        self._rows[labels] += 1

    def family(self) -> Metric:
        """Prometheus asks from another thread."""
        family = self._family()
        for labels, number in list(self._rows.items()):
            family.add_metric(labels, number)
        return family


class Distribution:
    """A histogram. prometheus_client's takes three locks each time, and each cycle observes a dozen durations."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...], bounds: tuple[float, ...]) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._bounds = bounds
        self._rows: dict[tuple[str, ...], list[float]] = {} if labels else {(): [0.0] * (len(bounds) + 2)}

    def observe(self, labels: tuple[str, ...], amount: float) -> None:
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = [0.0] * (len(self._bounds) + 2)
        row[bisect_left(self._bounds, amount)] += 1
        row[-1] += amount

    def family(self) -> Metric:
        """Prometheus asks from another thread."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for labels, row in list(self._rows.items()):
            *counts, total = list(row)
            buckets, sum_of_counts = [], 0.0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                sum_of_counts += count
                buckets.append((_text(bound), sum_of_counts))
            family.add_metric(labels, buckets, sum_value=total)
        return family


class Measures:
    """Times cycles and events. A CycleWatch of `scheduler_core.running.timed`."""

    def __init__(self, *, clock: Callable[[], float], chance: Callable[[], float]) -> None:
        self.clock = clock
        self._chance = chance
        self._scheduler: Scheduler | None = None
        self._timed: tuple[Scheduler, Scheduler] | None = None
        self._points = Distribution(
            "scheduler_framework_extension_point_duration_seconds",
            "All plugins of one extension point in one cycle.",
            ("extension_point", "status", "profile"),
            _POINTS,
        )
        self.point: Callable[[tuple[str, str, str], float], None] = self._points.observe
        self._plugins = Distribution(
            "scheduler_plugin_execution_duration_seconds",
            "One call of a plugin, in a tenth of the cycles.",
            ("plugin", "extension_point", "status"),
            _PLUGINS,
        )
        self._events = Distribution(
            "scheduler_event_handling_duration_seconds", "One event of a watch.", ("event",), _POINTS
        )
        self._cycles: Counter[_Asked] = Counter()
        self._evaluations: Counter[tuple[str, str, str]] = Counter()

    def measured(self, scheduler: Scheduler) -> Scheduler:
        """The same one, timed. For the machine."""
        if self._timed is None or self._scheduler is not scheduler:
            self._scheduler = scheduler
            self._timed = (
                timed(scheduler, self, each_plugin=False),
                timed(scheduler, self, each_plugin=True),
            )
            return self._timed[1]  # a new process should show the metric soon
        return self._timed[self._chance() < _SAMPLED]

    # ---- calls of the timed scheduler, as is `point` ----

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self._plugins.observe((plugin, point, status), seconds)

    # ---- calls of the pump ----

    def handled(self, changes: Iterable[Change], seconds: float) -> None:
        for change in changes:
            for event in _events_of(change):
                self._events.observe(event, seconds)

    def attempted(self, profile: str, result: CycleResult) -> None:
        state, table = result.state, result.table
        if state is None:
            return
        refused = tuple((each.plugin, len(each.refused)) for each in result.diagnosis.rounds)
        self._cycles[
            profile,
            state.skipped_filters,
            state.skipped_scores,
            len(result.diagnosis.searched),
            refused,
            0 if table is None else len(table.nodes),
        ] += 1

    def sum_up(self, scheduler: Scheduler) -> None:
        """Adds the cycles since the last call to the counts of plugins."""
        cycles, self._cycles = self._cycles, Counter()
        found: Counter[tuple[str, str, str]] = Counter(self._evaluations)
        for (profile, skipped, unscored, searched, refused, scored), times in cycles.items():
            by_point = scheduler.runners[profile].plugins.by_point
            lost, left = dict(refused), searched
            for name in by_point.get("preFilter", ()):
                if name not in skipped:
                    found[name, "PreFilter", profile] += times
            for name in by_point.get("filter", ()):
                if name not in skipped and left:
                    found[name, "Filter", profile] += times * left
                    left -= lost.get(name, 0)
            for name in by_point.get("preScore", ()) if scored else ():
                if name not in unscored:
                    found[name, "PreScore", profile] += times
            for name in by_point.get("score", ()) if scored else ():
                if name not in unscored:
                    found[name, "Score", profile] += times * scored
        self._evaluations = found

    def collect(self) -> Iterator[Metric]:
        yield self._points.family()
        yield self._plugins.family()
        yield self._events.family()
        evaluated = CounterMetricFamily(
            "scheduler_plugin_evaluation",
            "How often a plugin was asked; by Filter and Score once for each node.",
            labels=("plugin", "extension_point", "profile"),
        )
        for labels, number in self._evaluations.items():
            evaluated.add_metric(labels, number)
        yield evaluated


_Asked = tuple[str, frozenset[str], frozenset[str], int, tuple[tuple[str, int], ...], int]


def _events_of(change: Change) -> tuple[tuple[str], ...]:
    """kube-scheduler's names."""
    old, new = change.old, change.new
    if change.kind == "Node" and old is not None and new is not None:
        return tuple((event.label,) for event in node_changes(old, new))
    kind = change.kind
    if kind == "Pod":
        has_node = (new if old is None else old).node_name
        if not has_node and new is not None and new.node_name:
            return _POD_BOUND
        kind = "AssignedPod" if has_node else "UnschedulablePod"
    action = "Add" if old is None else "Delete" if new is None else "Update"
    return _LABELS.get((kind, action), ())  # no plugin waits for other kinds


_POD_BOUND: Final = (("AssignedPodAdd",),)
_LABELS: Final = {
    (resource.value.rpartition("/")[2], action): ((f"{resource.value}{action}",),)
    for resource in Resource
    for action in ("Add", "Update", "Delete")
}


def _text(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(bound)
