"""A scheduler whose extension points and plugins are timed. It makes the same decisions; the clock is an argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, Protocol

from scheduler_core.cycle import Scheduler, with_runners
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.diagnosis import Round
from scheduler_core.framework.extension_points import Plugin, PostFilterResult, PreFilterResult
from scheduler_core.framework.failed_search import FailedSearch
from scheduler_core.framework.plugin_set import PluginSet
from scheduler_core.framework.runner import PreFiltered, Rows, Runner
from scheduler_core.framework.scoring.scorer import KeptScores, Scorer, ScoreTable
from scheduler_core.framework.verdict import Verdict
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.node_list import NodeList

# As kube-scheduler's metrics call the points (pkg/scheduler/metrics/metrics.go, v1.36).
_POINT_OF: Final[Mapping[str, str]] = {
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "filter_all": "Filter",
    "add_pod": "PreFilterExtensionAddPod",
    "remove_pod": "PreFilterExtensionRemovePod",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_all": "Score",
    "score_usage": "Score",
    "score_table": "Score",
    "normalize": "ScoreExtensionNormalize",
}


class CycleWatch(Protocol):
    @property
    def clock(self) -> Callable[[], float]:
        """In seconds."""

    def point(self, labels: tuple[str, str, str], seconds: float) -> None:
        """All plugins of an extension point in one cycle. `labels`: the point, its status, the profile."""

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """One call of a plugin: for all nodes, if it handles them at once."""


def timed(scheduler: Scheduler, watch: CycleWatch, *, each_plugin: bool) -> Scheduler:
    """`each_plugin`: also each call of a plugin, which costs much more. A point at which a plugin fails is not told."""
    runners = {
        profile: _TimedRunner(_timed_plugins(runner.plugins, watch) if each_plugin else runner.plugins, profile, watch)
        for profile, runner in scheduler.runners.items()
    }
    return with_runners(scheduler, runners)


class _TimedRunner(Runner):
    def __init__(self, plugins: PluginSet, profile: str, watch: CycleWatch) -> None:
        super().__init__(plugins)
        self._scorer = _TimedScorer(plugins, profile, watch)
        self._profile = profile
        self._clock, self._told = watch.clock, watch.point
        self._filtered = ("Filter", "Success", profile)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFiltered:
        begun = self._clock()
        prepared = super().pre_filter(state, pod, nodes)
        status = "Success" if prepared.refusal is None else prepared.refusal.code
        self._told(("PreFilter", status, self._profile), self._clock() - begun)
        return prepared

    def _filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> tuple[tuple[Round, ...], Rows | None]:
        begun = self._clock()
        filtered = super()._filter(state, pod, nodes)
        self._told(self._filtered, self._clock() - begun)
        return filtered

    def post_filter(self, state: CycleState, pod: Pod, search: FailedSearch) -> PostFilterResult:
        begun = self._clock()
        result = super().post_filter(state, pod, search)
        self._told(("PostFilter", result.verdict.code, self._profile), self._clock() - begun)
        return result


class _TimedScorer(Scorer):
    def __init__(self, plugins: PluginSet, profile: str, watch: CycleWatch) -> None:
        super().__init__(plugins)
        self._clock, self._told = watch.clock, watch.point
        self._pre_scored = ("PreScore", "Success", profile)
        self._scored = ("Score", "Success", profile)
        self._preparing = 0.0

    def score(self, state: CycleState, pod: Pod, nodes: NodeList) -> ScoreTable:
        """PreScore, which is a part of it, is told apart."""
        begun = self._clock()
        table = super().score(state, pod, nodes)
        self._told(self._scored, self._clock() - begun - self._preparing)
        return table

    def _prepared(self, state: CycleState, pod: Pod, nodes: NodeList, kept: KeptScores | None) -> frozenset[str]:
        begun = self._clock()
        skipped = super()._prepared(state, pod, nodes, kept)
        self._preparing = self._clock() - begun
        self._told(self._pre_scored, self._preparing)
        return skipped


class _TimedPlugin:
    """A plugin with the same methods and values."""

    name: str

    def __init__(self, plugin: Any, watch: CycleWatch) -> None:
        for name in dir(plugin):
            if not name.startswith("_"):
                value = getattr(plugin, name)
                point = _POINT_OF.get(name)
                setattr(self, name, value if point is None else self._timed(value, point, watch))

    def _timed(self, method: Callable[..., Any], point: str, watch: CycleWatch) -> Callable[..., Any]:
        @wraps(method)
        def call(*given: Any) -> Any:
            begun, status = watch.clock(), "Error"
            try:
                answer = method(*given)
                status = _status(answer)
            finally:  # `plugin_contract.plugin_that_raised` finds the plugin by `self` in this frame
                watch.plugin(self.name, point, status, watch.clock() - begun)
            return answer

        return call


def _timed_plugins(plugins: PluginSet, watch: CycleWatch) -> PluginSet:
    each: dict[str, Plugin] = {name: _TimedPlugin(plugin, watch) for name, plugin in plugins.plugins.items()}
    return PluginSet(each, plugins.by_point, plugins.weights)


def _status(answer: object) -> str:
    verdict = answer.verdict if isinstance(answer, PreFilterResult | PostFilterResult) else answer
    return verdict.code if isinstance(verdict, Verdict) else "Success"
