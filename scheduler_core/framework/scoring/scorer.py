"""PreScore, Score and NormalizeScore, and the weighted sum.

The rules, such as which verdicts of PreScore end the cycle, follow pkg/scheduler/framework/runtime/framework.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Final
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.cycle_state import CycleError, CycleState, UnpreparedError
from scheduler_core.framework.extension_points import (
    MAX_NODE_SCORE,
    NodeRulePlugin,
    NormalizePlugin,
    PreparesBySpec,
    PreScorePlugin,
    ScoreAllPlugin,
    ScorePlugin,
    Scores,
    TabledScorePlugin,
    UsageRulePlugin,
)
from scheduler_core.framework.plugin_set import PluginSet
from scheduler_core.framework.scoring.by_usage import by_usage
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.plugin_contract import check_scores, check_verdict, scores_of_each
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.usage import Usage
from scheduler_core.values import Value

Rows = NDArray[np.intp]

_INT64: Final = np.dtype(np.int64)
_SEEN: Final = "once"
_INVALID: Final = -1  # valid sums are not negative


class ScoreTable(Value, eq=False):
    """Each plugin's weighted scores of the scored nodes, and each node's sum over the plugins."""

    nodes: NodeList
    by_plugin: Mapping[str, Scores]
    total: Scores


class _WhenRead(Mapping[str, Scores]):
    """Weighted scores by plugin, computed when they are read: a cycle needs only their sum."""

    def __init__(self, ways: Mapping[str, Callable[[], Scores]]) -> None:
        self._ways = ways
        self._known: dict[str, Scores] = {}

    def __getitem__(self, name: str) -> Scores:
        if name not in self._known:
            self._known[name] = self._ways[name]()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ways)

    def __len__(self) -> int:
        return len(self._ways)


class KeptScores(Value, eq=False, kw_only=True):
    """Of the score plugins that read only the spec and the nodes, for the scored `rows`.

    `notes` and `skipped`: what their PreScore wrote, and which skip Score. `found`: their sum; `ways`: as in
    `_WhenRead`. `left`: the plugins that must be asked.
    """

    spec: ref[PodSpec]
    rows: Rows
    notes: Mapping[type, object]
    skipped: frozenset[str]
    left: tuple[ScorePlugin, ...]
    found: tuple[Scores, ...]
    ways: Mapping[str, Callable[[], Scores]]


def _in_little(scores: Scores) -> Scores:
    """In a byte each, if they are small enough: each spec has its own."""
    return scores.astype(np.uint8) if np.maximum.reduce(scores, initial=0) < 256 else scores


class Scorer:
    """The score plugins of one profile. Has no state of its own."""

    def __init__(self, plugins: PluginSet) -> None:
        self._weights = plugins.weights
        self._pre_scores = plugins.at("preScore")
        self._scores: tuple[ScorePlugin, ...] = plugins.at("score")
        # Looked up once: the lookup costs more than many scores.
        self._scores_all = {p.name: p for p in self._scores if isinstance(p, ScoreAllPlugin)}
        self._tabled = {p.name: p for p in self._scores if isinstance(p, TabledScorePlugin)}
        self._normalizers = {p.name: p for p in self._scores if isinstance(p, NormalizePlugin)}
        # A profile may disable a plugin's PreScore but not its Score. Plugins then prepare in Score
        # (`prepares_late`) or end the cycle with an error.
        self._late = tuple(
            p
            for p in self._scores
            if "score" in getattr(p, "prepares_late", ())
            and p not in self._pre_scores
            and isinstance(p, PreScorePlugin)
        )
        by_spec = () if self._late else tuple(p for p in self._pre_scores if isinstance(p, PreparesBySpec))
        self._by_spec = tuple(p for p in by_spec if p.prepares_by_spec)
        self._not_by_spec = tuple(p for p in self._pre_scores if p not in self._by_spec)
        at_once = () if self._late else tuple(self._scores_all.values())
        self._node_rules = {p.name: p for p in at_once if isinstance(p, NodeRulePlugin)}
        self._kept_rules = {name for name, p in self._node_rules.items() if p not in self._not_by_spec}
        self._usage_rules = {
            p.name: p for p in at_once if isinstance(p, UsageRulePlugin) and p.name not in self._normalizers
        }

    @property
    def has_plugins(self) -> bool:
        return bool(self._scores)

    def score(self, state: CycleState, pod: Pod, nodes: NodeList) -> ScoreTable:
        """See `Runner.score`."""
        if not self._scores:
            return ScoreTable(nodes, {}, np.ones(len(nodes), dtype=np.int64))
        kept = self._kept_for(pod, nodes) if pod.resize is None else None
        if kept is not None:
            state.write_all(kept.notes)
        state.skipped_scores = self._prepared(state, pod, nodes, kept)
        # If `nodes` are more than half of all nodes, scoring all is cheaper than picking `nodes` out of every column.
        is_most = not nodes.is_all and 2 * len(nodes.rows) > len(nodes.columns.nodes)
        asked = NodeList(nodes.snapshot, None, nodes.rules) if is_most else nodes
        ways: dict[str, Callable[[], Scores]] = {}
        rules: list[UsageRulePlugin] = []
        found: list[Scores] = []
        left = self._scores
        if kept is not None and kept.rows is nodes.rows:
            left = kept.left
            ways.update(kept.ways)
            found += kept.found
        for plugin in left:
            if plugin.name in state.skipped_scores:
                continue
            rule = self._usage_rules.get(plugin.name)
            if rule is not None:
                rules.append(rule)
                ways[plugin.name] = partial(self._weighed_anew, plugin, state, pod, nodes, nodes)
            else:
                found.append(scores := self._weighted(plugin, state, pod, nodes, asked))
                ways[plugin.name] = partial(_unchanged, scores)
        if rules:
            by_rules = self._sum_by_usage(rules, state, nodes)
            if np.minimum.reduce(by_rules, initial=0) == _INVALID:
                for each in rules:
                    ways[each.name]()  # raises CycleError for the plugin whose score is outside the range
            found.append(by_rules)
        total = reduce(np.add, found) if found else np.zeros(len(nodes), dtype=np.int64)
        return ScoreTable(nodes, _WhenRead(ways), total)

    def _kept_for(self, pod: Pod, nodes: NodeList) -> KeptScores | None:
        """What `PreparesBySpec` and `NodeRulePlugin` give for every pod with this spec. None if a plugin fails, and
        the first time."""
        columns, spec = nodes.columns, pod.spec
        known: KeptScores | str | None = columns.kept_scores.get((self, id(spec)))
        if known is None:  # a forecast asks most specs only once before nodes change
            columns.kept_scores[self, id(spec)] = _SEEN
            return None
        if isinstance(known, KeptScores):
            is_same = known.rows is nodes.rows or nodes.rows.flags.writeable
            if is_same and known.spec() is spec:
                return known
        state, skipped = CycleState(), set[str]()
        for plugin in self._by_spec:
            verdict = plugin.pre_score(state, pod, nodes)
            if verdict.is_skip:
                skipped.add(plugin.name)
            elif not verdict.is_success:
                return None
        found: dict[str, Scores] = {}
        left = list(self._scores)
        for each in self._scores if not nodes.rows.flags.writeable else ():  # else the rows are not asked for again
            if each.name in self._kept_rules:
                left.remove(each)
                if each.name not in skipped:
                    found[each.name] = _in_little(self._weighed_anew(each, state, pod, nodes, nodes))
        kept = columns.kept_scores[self, id(spec)] = KeptScores(
            spec=ref(spec),
            rows=nodes.rows,
            notes=state.notes,
            skipped=frozenset(skipped),
            left=tuple(left),
            found=() if not found else (_in_little(reduce(np.add, found.values(), np.zeros(len(nodes), np.int64))),),
            ways={name: partial(_as_scores, scores) for name, scores in found.items()},
        )
        return kept

    def _prepared(self, state: CycleState, pod: Pod, nodes: NodeList, kept: KeptScores | None) -> frozenset[str]:
        """Runs PreScore: the names of the plugins that skip Score for the pod."""
        skipped: set[str] = set()
        for plugin in self._pre_scores if kept is None else self._not_by_spec:
            verdict = plugin.pre_score(state, pod, nodes)
            check_verdict(plugin.name, "pre_score", verdict)
            if verdict.is_skip:
                skipped.add(plugin.name)
            elif not verdict.is_success:
                raise CycleError(plugin.name, f'running PreScore plugin "{plugin.name}": {verdict.message}')
        return frozenset(skipped) if kept is None else kept.skipped.union(skipped)

    # ---- scores by the pods' requests ----

    def _sum_by_usage(self, rules: Sequence[UsageRulePlugin], state: CycleState, nodes: NodeList) -> Scores:
        """Each node's sum over these plugins. Only this sum is cached, not the scores of each plugin."""
        keys = []
        for rule in rules:
            try:
                keys.append((rule.name, rule.usage_key(state)))
            except UnpreparedError as missing:
                raise _unprepared(rule.name, missing) from missing
        return by_usage(nodes, (self, *keys), partial(self._add_up, rules, state))

    def _add_up(self, rules: Sequence[UsageRulePlugin], state: CycleState, nodes: NodeList, usage: Usage) -> Scores:
        """`_INVALID` for a node with a score outside 0 … 100. Does not raise: the cycle fails only if such a node
        passed the filters."""
        found = [rule.score_usage(state, nodes, usage) for rule in rules]
        for rule, scores in zip(rules, found, strict=True):
            if not _are_scores(scores, len(nodes)):
                check_scores(rule.name, "score_usage", scores, len(nodes))
        total = reduce(np.add, (self._times_weight(rule.name, each) for rule, each in zip(rules, found, strict=True)))
        for scores in filter(_leaves_the_range, found):
            # A new array, because `total` may be the array of the only rule, and belong to the snapshot.
            total = np.where((scores < 0) | (scores > MAX_NODE_SCORE), _INVALID, total)
        return total

    # ---- other scores ----

    def _weighted(self, plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: NodeList, asked: NodeList) -> Scores:
        rule = self._node_rules.get(plugin.name)
        if rule is None:
            return self._weighed_anew(plugin, state, pod, nodes, asked)
        answers, key = nodes.columns.answers, (self, "score", plugin.name, rule.node_key(pod))
        known: tuple[Rows, Scores] | None = answers.get(key)
        if known is not None and known[0] is nodes.rows:
            return known[1]
        scores = self._weighed_anew(plugin, state, pod, nodes, asked)
        if not nodes.rows.flags.writeable:  # `Runner._by_node_rules` caches these rows and returns them again
            answers[key] = (nodes.rows, scores)
        return scores

    def _weighed_anew(
        self, plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: NodeList, asked: NodeList
    ) -> Scores:
        table = self._table(plugin, state, pod, nodes)
        if table is not None:
            return table
        scores = self._raw(plugin, state, pod, nodes, asked)
        normalizer = self._normalizers.get(plugin.name)
        if normalizer is not None:
            scores = normalizer.normalize(state, pod, nodes, scores)
            if not _are_scores(scores, len(nodes)):
                check_scores(plugin.name, "normalize", scores, len(nodes))
        if _leaves_the_range(scores):
            place = int(np.flatnonzero((scores < 0) | (scores > MAX_NODE_SCORE))[0])
            raise CycleError(
                plugin.name,
                f'plugin "{plugin.name}" returns an invalid score {scores[place]}, it should in the range of [0, '
                f"{MAX_NODE_SCORE}] after normalizing (node {nodes.names[place]})",
            )
        return self._times_weight(plugin.name, scores)

    def _table(self, plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: NodeList) -> Scores | None:
        tabled = self._tabled.get(plugin.name)
        if tabled is None or self._late:
            return None
        try:
            found = tabled.score_table(state, pod, nodes)
        except UnpreparedError as missing:
            raise _unprepared(plugin.name, missing) from missing
        if found is None:
            return None
        scores, places = found
        weight = self._weights[plugin.name]
        return np.array([score * weight for score in scores], dtype=np.int64).take(places)

    def _times_weight(self, name: str, scores: Scores) -> Scores:
        weight = self._weights[name]
        return scores if weight == 1 else scores * weight

    def _raw(self, plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: NodeList, asked: NodeList) -> Scores:
        """Scores of `nodes` before normalizing. A plugin with an all-nodes form scores `asked`, which contains `nodes`;
        the rest is dropped."""
        if self._late and any(
            plugin.name == late.name and late.pre_score(state, pod, nodes).is_skip for late in self._late
        ):
            return np.zeros(len(nodes), dtype=np.int64)
        at_once = self._scores_all.get(plugin.name)
        try:
            scores = None if at_once is None else at_once.score_all(state, pod, asked)
            if scores is not None:
                if not _are_scores(scores, len(asked)):
                    check_scores(plugin.name, "score_all", scores, len(asked))
                return scores if asked is nodes else nodes.take(scores)
            return scores_of_each(plugin.name, [plugin.score(state, pod, node_info) for node_info in nodes])
        except UnpreparedError as missing:
            raise _unprepared(plugin.name, missing) from missing


def _unchanged(scores: Scores) -> Scores:
    return scores


def _as_scores(scores: Scores) -> Scores:
    return scores.astype(np.int64)


def _unprepared(name: str, missing: UnpreparedError) -> CycleError:
    return CycleError(name, f'running Score plugins: plugin "{name}" failed with: {missing}')


def _are_scores(given: object, count: int) -> bool:
    """The quick answer for nearly all plugins; if False, `check_scores` decides."""
    return type(given) is np.ndarray and given.dtype is _INT64 and len(given) == count


def _leaves_the_range(scores: Scores) -> bool:
    if scores.dtype is not _INT64:
        return bool(len(scores)) and bool(scores.min() < 0 or scores.max() > MAX_NODE_SCORE)
    # Read as unsigned, numbers below 0 are larger than any score, so one comparison finds both errors.
    return bool(np.maximum.reduce(scores.view(np.uint64), initial=0) > MAX_NODE_SCORE)
