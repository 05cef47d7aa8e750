"""A scheduler whose extension points and plugins are timed. It makes the same decisions; the clock is an argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, Final, Protocol, Self

from scheduler_core.cycle import Scheduler, with_runners
from scheduler_core.framework.binding import BindingCycle
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
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
}
"""PreBind, Bind and PostBind are not here: some of their calls end only with an answer, so the machine tells them."""


class CycleWatch(Protocol):
    @property
    def clock(self) -> Callable[[], float]:
        """In seconds."""

    def point(self, labels: tuple[str, str, str], seconds: float) -> None:
        """All plugins of an extension point in one cycle. `labels`: the point, its status, the profile."""

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """One call of a plugin: for all nodes, if it handles them at once."""


def timed(scheduler: Scheduler, watch: CycleWatch, *, each_plugin: bool) -> Scheduler:
    """`each_plugin`: also each call of a plugin, which costs much more."""
    runners = {
        profile: _TimedRunner(
            _timed_plugins(runner.plugins, watch) if each_plugin else runner.plugins,
            profile,
            watch,
            each_plugin=each_plugin,
        )
        for profile, runner in scheduler.runners.items()
    }
    return with_runners(scheduler, runners)


class PodStopwatch:
    """Of one pod: in the state of its cycle, until its binding has ended. Without a `watch` it tells nobody; `plugins`:
    those of the cycle."""

    __slots__ = ("_began", "_each_plugin", "_profile", "_watch", "plugins")

    def __init__(self, watch: CycleWatch | None, profile: str, plugins: PluginSet | None, *, each_plugin: bool) -> None:
        self.plugins = plugins
        self._watch = watch
        self._profile = profile
        self._each_plugin = each_plugin
        self._began: dict[tuple[str, str], float] = {}

    def begin(self, point: str, plugin: str = "") -> None:
        """An extension point, or a plugin's call. Ignored if it has begun."""
        if self._watch is not None and (self._each_plugin or not plugin):
            self._began.setdefault((point, plugin), self._watch.clock())

    def end(self, point: str, status: str, plugin: str = "") -> None:
        """Ignored if it has not begun."""
        began = self._began.pop((point, plugin), None)
        if began is None or self._watch is None:
            return
        seconds = self._watch.clock() - began
        if plugin:
            self._watch.plugin(plugin, point, status, seconds)
        else:
            self._watch.point((point, status, self._profile), seconds)

    def end_all(self, status: str) -> None:
        """Plugins before their points."""
        for point, plugin in reversed(tuple(self._began)):
            self.end(point, status, plugin)

    def time(self, point: str, work: Callable[[], Verdict]) -> Verdict:
        self.begin(point)
        try:
            verdict = work()
        except Exception:
            self.end(point, "Error")
            raise
        self.end(point, verdict.code)
        return verdict


NOT_TIMED: Final = PodStopwatch(None, "", None, each_plugin=False)


def binding_cycle(plugins: PluginSet, stopwatch: PodStopwatch) -> BindingCycle:
    """With these plugins, unless the pod's cycle had timed ones."""
    if stopwatch.plugins is None:
        return BindingCycle(plugins)
    return _TimedBindingCycle(stopwatch.plugins, stopwatch=stopwatch)


class _TimedBindingCycle(BindingCycle, kw_only=True):
    stopwatch: PodStopwatch

    def _reserve(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:
        return self.stopwatch.time("Reserve", partial(super()._reserve, state, pod, node_name))

    def _permit(self, state: CycleState, pod: Pod, node_name: str, waiting_for: list[str]) -> Verdict:
        return self.stopwatch.time("Permit", partial(super()._permit, state, pod, node_name, waiting_for))

    def give_up(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.stopwatch.begin("Unreserve")
        try:
            super().give_up(state, pod, node_name)
        finally:
            self.stopwatch.end("Unreserve", "Success")  # kube-scheduler has no other status for it


class _TimedRunner(Runner):
    def __init__(self, plugins: PluginSet, profile: str, watch: CycleWatch, *, each_plugin: bool) -> None:
        super().__init__(plugins)
        self._scorer = _TimedScorer(plugins, profile, watch)
        self._profile = profile
        self._watch, self._each_plugin = watch, each_plugin

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFiltered:
        state.write(PodStopwatch(self._watch, self._profile, self.plugins, each_plugin=self._each_plugin))
        with _Point(self._watch, "PreFilter", self._profile) as told:
            prepared = super().pre_filter(state, pod, nodes)
            told.status = "Success" if prepared.refusal is None else prepared.refusal.code
        return prepared

    def _filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> tuple[tuple[Round, ...], Rows | None]:
        with _Point(self._watch, "Filter", self._profile):
            return super()._filter(state, pod, nodes)

    def post_filter(self, state: CycleState, pod: Pod, search: FailedSearch) -> PostFilterResult:
        with _Point(self._watch, "PostFilter", self._profile) as told:
            result = super().post_filter(state, pod, search)
            told.status = result.verdict.code
        return result


class _TimedScorer(Scorer):
    def __init__(self, plugins: PluginSet, profile: str, watch: CycleWatch) -> None:
        super().__init__(plugins)
        self._watch = watch
        self._profile = profile
        self._score: _Point | None = None

    def score(self, state: CycleState, pod: Pod, nodes: NodeList) -> ScoreTable:
        """PreScore, which is a part of it, is told apart; Score is not told if it fails."""
        with _Point(self._watch, "Score", self._profile) as self._score:
            return super().score(state, pod, nodes)

    def _prepared(self, state: CycleState, pod: Pod, nodes: NodeList, kept: KeptScores | None) -> frozenset[str]:
        assert self._score is not None
        self._score.is_told = False
        with _Point(self._watch, "PreScore", self._profile) as told:
            skipped = super()._prepared(state, pod, nodes, kept)
        self._score.is_told = True
        self._score.begun += told.seconds
        return skipped


class _Point:
    """Times an extension point: with the status Error if it raises, and not at all if it will be repeated because an
    extender must be asked."""

    __slots__ = ("_labels", "_watch", "begun", "is_told", "seconds", "status")

    def __init__(self, watch: CycleWatch, point: str, profile: str) -> None:
        self._watch = watch
        self._labels = (point, profile)
        self.status = "Success"
        self.is_told = True
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self.begun = self._watch.clock()
        return self

    def __exit__(self, _: object, bug: BaseException | None, __: object) -> None:
        self.seconds = self._watch.clock() - self.begun
        if self.is_told and (bug is None or isinstance(bug, Exception)):
            point, profile = self._labels
            self._watch.point((point, self.status if bug is None else "Error", profile), self.seconds)


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
            begun = watch.clock()
            try:  # `plugin_contract.plugin_that_raised` finds the plugin by `self` in this frame
                answer = method(*given)
            except Exception:
                watch.plugin(self.name, point, "Error", watch.clock() - begun)
                raise
            watch.plugin(self.name, point, _status(answer), watch.clock() - begun)
            return answer

        return call


def _timed_plugins(plugins: PluginSet, watch: CycleWatch) -> PluginSet:
    each: dict[str, Plugin] = {name: _TimedPlugin(plugin, watch) for name, plugin in plugins.plugins.items()}
    return PluginSet(each, plugins.by_point, plugins.weights)


def _status(answer: object) -> str:
    verdict = answer.verdict if isinstance(answer, PreFilterResult | PostFilterResult) else answer
    return verdict.code if isinstance(verdict, Verdict) else "Success"
