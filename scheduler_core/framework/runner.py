"""Runs the plugins of one extension point: in one call if the plugin can handle all nodes at once, otherwise node by
node.

Source: pkg/scheduler/framework/runtime/framework.go, v1.36, which defines, for example, after which verdict no further
plugin runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.cycle_state import CycleError, CycleState, UnpreparedError
from scheduler_core.framework.diagnosis import Diagnosis, Round
from scheduler_core.framework.extension_points import (
    FilterAllPlugin,
    FilterPlugin,
    FiltersBySpec,
    NodeRulePlugin,
    PostFilterResult,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
)
from scheduler_core.framework.failed_search import FailedSearch
from scheduler_core.framework.plugin_set import PluginSet
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.scoring.scorer import Scorer, ScoreTable
from scheduler_core.framework.skipped_by_spec import SkippedBySpec
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, VerdictCode, error, unresolvable, unschedulable
from scheduler_core.model.pod import Pod
from scheduler_core.plugin_contract import (
    check_post_filter,
    check_pre_filter,
    check_refusals,
    check_verdict,
    check_verdicts,
)
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.nodes.kept_answers import KeptAnswers, kept_answers, others
from scheduler_core.values import Value, replace_value

Nominated = Mapping[str, tuple[Pod, ...]]
Rows = NDArray[np.intp]
NOBODY: Final[Nominated] = {}


class PreFiltered(Value):
    """Either `refusal` refuses every node, or `node_names` are the nodes to search (None: all), chosen by the plugins
    in `asked_by`."""

    refusal: Verdict | None = None
    node_names: frozenset[str] | None = None
    asked_by: tuple[str, ...] = ()


class _Sieved(Value, eq=False):
    """The nodes that passed the filters so far.

    `alive`: for each node of the searched list, whether it passed. `rows`: the passed rows of the snapshot, if known.
    `rounds`: each filter's refusals. `is_over`: no node is left.
    """

    alive: NDArray[np.bool_]
    rounds: tuple[Round, ...] = ()
    rows: Rows | None = None
    is_over: bool = False

    def without(self, answers: Round) -> _Sieved:
        alive = self.alive.copy()
        alive[answers.refused] = False
        return _Sieved(alive, (*self.rounds, answers), is_over=not np.logical_or.reduce(alive))


class Runner:
    """The plugins of one profile. Has no state of its own."""

    def __init__(self, plugins: PluginSet) -> None:
        self.plugins = plugins
        self._pre_filters = plugins.at("preFilter")
        self._skipped_by_spec = SkippedBySpec(self._pre_filters)
        self._filters: tuple[FilterPlugin, ...] = plugins.at("filter")
        # Looked up once: the lookup costs more than many filters.
        self._filters_all = {p.name: p for p in self._filters if isinstance(p, FilterAllPlugin)}
        self._extensions = tuple(p for p in self._pre_filters if isinstance(p, PreFilterExtensions))
        self._post_filters = plugins.at("postFilter")
        self.reserves = plugins.at("reserve")
        self._scorer = Scorer(plugins)
        # A profile may disable a plugin's PreFilter but not its Filter. Plugins then prepare in Filter
        # (`prepares_late`) or end the cycle with an error.
        self._late_filters = tuple(
            p
            for p in self._filters
            if "filter" in getattr(p, "prepares_late", ())
            and p not in self._pre_filters
            and isinstance(p, PreFilterPlugin)
        )
        # The first filters whose results depend only on the nodes and are cached. Empty if a filter prepares late: each
        # call of `_refusals` then writes state, which a cached result would skip.
        first = takewhile(lambda p: isinstance(p, NodeRulePlugin) and p.name in self._filters_all, self._filters)
        self._node_filters: tuple[Any, ...] = () if self._late_filters else tuple(first)
        self._filters_of_pods = self._filters[len(self._node_filters) :]
        self._asks_more = frozenset(
            p.name for p in self._filters if not (isinstance(p, FiltersBySpec) and p.filters_by_spec)
        )

    # ---- PreEnqueue ----

    def pre_enqueue(self, pod: Pod) -> Verdict:
        """The first refusal, or SUCCESS."""
        for plugin in self.plugins.at("preEnqueue"):
            verdict: Verdict = plugin.pre_enqueue(pod)
            check_verdict(plugin.name, "pre_enqueue", verdict)
            if not verdict.is_success:
                return verdict.by(plugin.name)
        return SUCCESS

    # ---- PreFilter ----

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFiltered:
        """After a refusal that evictions cannot help, no further plugin runs. If they may help, the others still run:
        preemption needs their state (kubernetes/kubernetes#119770)."""
        plugins, skipping = self._skipped_by_spec.called_and_skipped(pod.spec)
        skipped = set(skipping)
        refusal: Verdict | None = None
        names: frozenset[str] | None = None
        asked: list[str] = []
        for plugin in plugins:
            result = plugin.pre_filter(state, pod, nodes)
            if (
                type(result) is not PreFilterResult
                or (result.verdict is not SUCCESS and result.verdict is not SKIP)
                or result.node_names is not None
            ):
                check_pre_filter(plugin.name, result)
            code = result.verdict.code
            if code is VerdictCode.SKIP:
                skipped.add(plugin.name)
                continue
            verdict = result.verdict.by(plugin.name)
            if code is VerdictCode.UNSCHEDULABLE:
                refusal = verdict
            elif verdict.is_rejection:
                refusal = verdict
                asked.clear()  # as in kube-scheduler, this plugin alone has refused
                break
            elif not verdict.is_success:
                raise CycleError(plugin.name, f'running PreFilter plugin "{plugin.name}": {verdict.message}')
            elif result.node_names is not None:
                asked.append(plugin.name)
                names = result.node_names if names is None else names & result.node_names
                if not names:
                    refusal = _no_common_node(asked)
                    break
        state.skipped_filters = frozenset(skipped)
        return PreFiltered(refusal, names, tuple(sorted(asked)))

    # ---- Filter ----

    def search(self, state: CycleState, pod: Pod, nodes: NodeList, nominated: Nominated = NOBODY) -> Diagnosis:
        """PreFilter and Filter; every node's verdict. Raises CycleError if a plugin fails.

        `nominated`: pods by the node to which preemption nominated them. The pod must fit beside those of equal or
        higher priority.
        """
        prepared = self.pre_filter(state, pod, nodes)
        if prepared.refusal is not None:
            return Diagnosis(nodes=nodes, prefilter=prepared.refusal, asked_by=prepared.asked_by)
        excused = (p.name for p in self._late_filters if p.pre_filter(state, pod, nodes).verdict.is_skip)
        state.skipped_filters = state.skipped_filters.union(excused)
        if prepared.node_names is None:
            rounds, sieved = self._filter(state, pod, nodes)
            replaced = self._refused_beside(state, pod, nodes, nominated)
            return Diagnosis(nodes=nodes, rounds=rounds, sieved=sieved, replaced=replaced)
        row_of = nodes.columns.row_of
        rows = np.array(sorted(row_of[name] for name in prepared.node_names if name in row_of), dtype=np.intp)
        outside = unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(prepared.asked_by)}]")
        searched = NodeList(nodes.snapshot, rows, nodes.rules)
        (rounds, _), replaced = (
            self._filter(state, pod, searched),
            self._refused_beside(state, pod, searched, nominated),
        )
        return Diagnosis(
            nodes=nodes, inside=rows, outside=outside, asked_by=prepared.asked_by, rounds=rounds, replaced=replaced
        )

    def _filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> tuple[tuple[Round, ...], Rows | None]:
        """The refusals of each filter, and the passed rows; None for the rows if `nodes` is not the whole snapshot."""
        if not nodes.is_all:
            return self._sift(self._filters, _Sieved(np.ones(len(nodes), dtype=bool)), state, pod, nodes).rounds, None
        begun = self._by_node_rules(state, pod, nodes)
        done = self._sift(self._filters[len(self._node_filters) :], begun, state, pod, nodes)
        return done.rounds, begun.rows if done is begun else done.alive.nonzero()[0]

    def _by_node_rules(self, state: CycleState, pod: Pod, nodes: NodeList) -> _Sieved:
        """The first filters, whose results depend only on the nodes (`NodeRulePlugin`); cached as long as the nodes do
        not change."""
        asked = [p for p in self._node_filters if p.name not in state.skipped_filters]
        key = (self, *((p.name, p.node_key(pod)) for p in asked))
        known: _Sieved | None = nodes.columns.answers.get(key)
        if known is None:
            done = self._sift(asked, _Sieved(np.ones(len(nodes), dtype=bool)), state, pod, nodes)
            rows = np.flatnonzero(done.alive)
            rows.flags.writeable = False
            known = nodes.columns.answers[key] = replace_value(done, rows=rows)
        return known

    def _sift(
        self, filters: Sequence[FilterPlugin], begun: _Sieved, state: CycleState, pod: Pod, nodes: NodeList
    ) -> _Sieved:
        """The nodes of `begun` that pass these filters; `begun` itself if all pass."""
        left = begun
        for plugin in filters:
            if left.is_over:
                break
            if plugin.name in state.skipped_filters:
                continue
            refusals = self._refusals(plugin, state, pod, nodes, left.alive)
            refused = (refusals.codes != 0).nonzero()[0]  # a mask is searched several times faster than numbers
            if len(refused) and len(refused := refused[left.alive[refused]]):
                left = left.without(_checked(Round(plugin.name, refused, refusals)))
        return left

    def _refused_beside(self, state: CycleState, pod: Pod, nodes: NodeList, nominated: Nominated) -> dict[int, Verdict]:
        """By row: refusals of nodes on which the pod does not fit together with the pods nominated to them."""
        refused: dict[int, Verdict] = {}
        if not nominated:
            return refused
        before: KeptAnswers[Verdict] = kept_answers(nodes.snapshot, "beside", self.question(state, pod))
        for node_name, pods in nominated.items():
            row = nodes.columns.row_of.get(node_name)
            if row is None or not (nodes.is_all or row in nodes.rows):
                continue
            node_info, beside = nodes.snapshot.node_info(row, nodes.rules), others(pod, pods)
            verdict = before.find(node_info, beside)
            if verdict is None:
                verdict = self._beside(state, pod, node_info, beside)
                before.keep(node_info, beside, verdict)
            if not verdict.is_success:
                refused[row] = verdict
        return refused

    def _refusals(
        self, plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: NodeList, alive: NDArray[np.bool_]
    ) -> Refusals:
        for late in self._late_filters:
            verdict = late.pre_filter(state, pod, nodes).verdict
            if late.name == plugin.name and verdict.is_rejection:
                return Refusals(np.ones(len(nodes), dtype=bool), {1: verdict})
        at_once = self._filters_all.get(plugin.name)
        try:
            refusals = None if at_once is None else at_once.filter_all(state, pod, nodes)
            if refusals is None:
                return one_by_one(plugin, state, pod, nodes, alive)
        except UnpreparedError as missing:
            raise CycleError(plugin.name, f'running "{plugin.name}" filter plugin: {missing}') from missing
        if (
            type(refusals) is not Refusals
            or getattr(refusals.codes, "shape", None) != (len(nodes),)
            or refusals.codes.dtype.kind not in "biu"
        ):
            check_refusals(plugin.name, refusals, len(nodes))
        return refusals

    def filter_node(self, state: CycleState, pod: Pod, node_info: NodeInfo, *, has_passed: bool = False) -> Verdict:
        """The first refusal, or SUCCESS. PreFilter must have written to `state` before. `has_passed`: the node passed
        with other pods; the filters whose results depend only on the node are not asked again."""
        for plugin in self._filters_of_pods if has_passed else self._filters:
            if plugin.name not in state.skipped_filters:
                try:
                    verdict = plugin.filter(state, pod, node_info)
                except UnpreparedError as missing:
                    verdict = error(f'running "{plugin.name}" filter plugin: {missing}')
                if verdict is not SUCCESS:
                    check_verdict(plugin.name, "filter", verdict)
                    if not verdict.is_success:
                        return verdict.by(plugin.name)
        return SUCCESS

    def every_verdict(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> dict[str, Verdict]:
        """Each filter's verdict on one node, even after a refusal, without skipped filters. Explains a decision; the
        cycle does not use it."""
        found = {
            plugin.name: plugin.filter(state, pod, node_info)
            for plugin in self._filters
            if plugin.name not in state.skipped_filters
        }
        for name, verdict in found.items():
            check_verdict(name, "filter", verdict)
        return found

    def filter_node_with_nominated(
        self,
        state: CycleState,
        pod: Pod,
        node_info: NodeInfo,
        nominated: tuple[Pod, ...],
        *,
        has_passed: bool = False,
    ) -> Verdict:
        """First with the nominated pods of equal or higher priority, then without them: the first refusal, or
        SUCCESS."""
        verdict = self._beside(state, pod, node_info, nominated)
        return self.filter_node(state, pod, node_info, has_passed=has_passed) if verdict.is_success else verdict

    def with_nominated(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, nominated: tuple[Pod, ...]
    ) -> tuple[CycleState, NodeInfo]:
        """The node with those nominated pods beside which the pod must fit: of equal or higher priority. And a copy of
        the state that counts them; the same state if there are none."""
        counted = [p for p in others(pod, nominated) if p.priority >= pod.priority]
        if not counted:
            return state, node_info
        trial = state.copy()
        for other in counted:
            node_info = node_info.with_pod(other)
            self.add_pod(trial, pod, other, node_info)
        return trial, node_info

    def _beside(self, state: CycleState, pod: Pod, node_info: NodeInfo, nominated: tuple[Pod, ...]) -> Verdict:
        if not nominated:
            return SUCCESS
        trial, fuller = self.with_nominated(state, pod, node_info, nominated)
        return SUCCESS if trial is state else self.filter_node(trial, pod, fuller)

    def question(self, state: CycleState, pod: Pod) -> Hashable | None:
        """Equal for pods that get the same verdict on every node with the same pods, while objects of other kinds stay
        the same. None if the verdict may depend on more, such as the pods of other nodes."""
        if self._late_filters or self._asks_more - state.skipped_filters or self.counts_pods(state):
            return None
        return self, pod.spec, pod.node_name, state.skipped_filters

    def counts_pods(self, state: CycleState) -> bool:
        """Whether `add_pod` and `remove_pod` have an effect."""
        return any(plugin.name not in state.skipped_filters for plugin in self._extensions)

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node_info: NodeInfo) -> Verdict:
        """Updates the counts in `state` after `other` was added; `node_info` already contains it."""
        for plugin in self._extensions:
            if plugin.name not in state.skipped_filters:
                verdict = plugin.add_pod(state, pod, other, node_info)
                check_verdict(plugin.name, "add_pod", verdict)
                if not verdict.is_success:
                    return verdict.by(plugin.name)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node_info: NodeInfo) -> Verdict:
        """Updates the counts in `state` after `other` was removed; `node_info` no longer contains it."""
        for plugin in self._extensions:
            if plugin.name not in state.skipped_filters:
                verdict = plugin.remove_pod(state, pod, other, node_info)
                check_verdict(plugin.name, "remove_pod", verdict)
                if not verdict.is_success:
                    return verdict.by(plugin.name)
        return SUCCESS

    # ---- PostFilter ----

    def post_filter(self, state: CycleState, pod: Pod, search: FailedSearch) -> PostFilterResult:
        """Runs until a plugin succeeds or says that eviction cannot help. If none does, the reasons of all plugins and
        the last nomination."""
        reasons: list[str] = []
        nomination = None
        rejector = ""
        for plugin in self._post_filters:
            result = plugin.post_filter(state, pod, search)
            check_post_filter(plugin.name, result)
            verdict = result.verdict.by(plugin.name)
            if verdict.is_success or verdict.code is VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return PostFilterResult(verdict, result.nomination)
            if not verdict.is_rejection:
                return PostFilterResult(verdict)
            nomination = result.nomination or nomination
            reasons.extend(verdict.reasons)
            rejector = rejector or plugin.name
        return PostFilterResult(unschedulable(*reasons).by(rejector), nomination)

    @property
    def has_post_filters(self) -> bool:
        return bool(self._post_filters)

    # ---- Score ----

    @property
    def has_scores(self) -> bool:
        return self._scorer.has_plugins

    def score(self, state: CycleState, pod: Pod, nodes: NodeList) -> ScoreTable:
        """Weighted, normalized scores. Raises CycleError if a plugin fails or returns a score outside 0 … 100."""
        return self._scorer.score(state, pod, nodes)


def one_by_one(
    plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: NodeList, alive: NDArray[np.bool_]
) -> Refusals:
    """Nodes that an earlier filter refused get SUCCESS here."""
    verdicts = [
        plugin.filter(state, pod, nodes[position]) if is_alive else SUCCESS
        for position, is_alive in enumerate(alive.tolist())
    ]
    check_verdicts(plugin.name, "filter", verdicts)
    return Refusals.of_each(verdicts)


def _checked(answers: Round) -> Round:
    """Raises CycleError if a verdict means that the plugin failed."""
    for verdict, _ in answers.counted() if answers.refusals.may_fail else ():
        if not verdict.is_rejection:
            raise CycleError(
                answers.plugin, f'running "{answers.plugin}" filter plugin: {verdict.message or verdict.code}'
            )
    return answers


def _no_common_node(asked: list[str]) -> Verdict:
    if len(asked) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {asked[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(asked))}] simultaneously")
