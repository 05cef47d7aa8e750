"""Refuses a node if its domain (zone, host, …) would have too many matching pods compared with the domain that has the
fewest. Prefers domains with fewer matching pods.

spread_counts.py counts the pods per domain.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from scheduler_core.config.plugin_args import PodTopologySpreadArgs
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import MAX_NODE_SCORE, Places, PreFilterResult, Scores
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.scoring.spread_counts import (
    HardSpread,
    SoftSpread,
    count_hard,
    count_soft,
    default_selector,
    with_match_label_keys,
    with_selector,
)
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, error, unresolvable, unschedulable
from scheduler_core.model.kept_with_spec import kept_with_spec
from scheduler_core.model.labels import LabelSelector
from scheduler_core.model.manifests.from_manifest import spread_constraint_from_manifest
from scheduler_core.model.node import HOSTNAME_LABEL, ZONE_LABEL
from scheduler_core.model.pod import Pod, PodSpec, TopologySpreadConstraint
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

_NO_LABEL: Final = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")
_SKEWED: Final = unschedulable("node(s) didn't match pod topology spread constraints")

_ANY = LabelSelector(None)
_SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(
        max_skew=3, topology_key=HOSTNAME_LABEL, when_unsatisfiable="ScheduleAnyway", selector=_ANY
    ),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE_LABEL, when_unsatisfiable="ScheduleAnyway", selector=_ANY),
)

Action = Literal["DoNotSchedule", "ScheduleAnyway"]


class PodTopologySpread(Value):
    """`defaults` apply to pods without their own constraints. If they are Kubernetes' own (`defaults_are_systems`), a
    node without a zone label is scored too."""

    defaults: tuple[TopologySpreadConstraint, ...] = _SYSTEM_DEFAULTS
    defaults_are_systems: bool = True
    name: ClassVar[str] = "PodTopologySpread"

    @classmethod
    def from_args(cls, args: PodTopologySpreadArgs) -> PodTopologySpread:
        if args.defaulting_type == "System":
            return cls()
        return cls(
            tuple(spread_constraint_from_manifest(c) for c in args.default_constraints), defaults_are_systems=False
        )

    def _constraints(self, snapshot: Snapshot, pod: Pod, action: Action) -> tuple[TopologySpreadConstraint, ...]:
        """Those whose whenUnsatisfiable is `action`; their selectors include the pod's matchLabelKeys. Defaults apply
        only if the pod has no constraint at all."""
        own = pod.spec.topology_spread
        if own:
            if any(c.match_label_keys for c in own):
                return tuple(with_match_label_keys(c, pod) for c in own if c.when_unsatisfiable == action)
            return _of_action(pod.spec, action)
        defaults = tuple(c for c in self.defaults if c.when_unsatisfiable == action)
        selector = default_selector(snapshot, pod) if defaults else None
        if selector is None or selector.is_empty:
            return ()
        return _with_selector(defaults, selector)

    # ---- filter ----

    def skips(self, spec: PodSpec) -> bool:
        return all(c.when_unsatisfiable != "DoNotSchedule" for c in spec.topology_spread or self.defaults)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:
        constraints = self._constraints(nodes.snapshot, pod, "DoNotSchedule")
        problem = _problem(constraints)
        if problem:
            return PreFilterResult(error(problem))
        if not constraints:
            return PreFilterResult(SKIP)
        state.write(count_hard(nodes.snapshot, pod, constraints))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        for spread in state.read(HardSpread).constraints:
            value = node_info.node.labels.get(spread.constraint.topology_key)
            if value is None:
                return _NO_LABEL
            if spread.skew_in(value) > spread.constraint.max_skew:
                return _SKEWED
        return SUCCESS

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002
        codes = np.zeros(len(nodes), dtype=np.int8)
        for spread in reversed(state.read(HardSpread).constraints):
            if spread.is_any_too_skewed:
                codes[nodes.take(spread.too_skewed)] = 2
            if not spread.topology.everywhere:
                codes[nodes.take(~spread.topology.present)] = 1
        return Refusals(codes, {1: _NO_LABEL, 2: _SKEWED})

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node_info: NodeInfo) -> Verdict:
        state.write(state.read(HardSpread).changed(pod, added, node_info.row, 1))
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node_info: NodeInfo) -> Verdict:
        state.write(state.read(HardSpread).changed(pod, removed, node_info.row, -1))
        return SUCCESS

    # ---- score ----

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict:
        constraints = self._constraints(nodes.snapshot, pod, "ScheduleAnyway")
        problem = _problem(constraints)
        if problem:
            return error(problem)
        if not constraints:
            return SKIP
        needs_all_keys = bool(pod.spec.topology_spread) or not self.defaults_are_systems
        state.write(count_soft(nodes, pod, constraints, needs_all_keys=needs_all_keys))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return state.read(SoftSpread).score_of(pod, node_info)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores:  # noqa: ARG002
        return state.read(SoftSpread).scores(nodes)

    def score_table(self, state: CycleState, pod: Pod, nodes: NodeList) -> tuple[list[int], Places] | None:  # noqa: ARG002
        return state.read(SoftSpread).table(nodes)

    def normalize(self, state: CycleState, pod: Pod, nodes: NodeList, scores: Scores) -> Scores:  # noqa: ARG002
        ignored = state.read(SoftSpread).ignored
        return _evened(scores, None if ignored is None else nodes.take(ignored))


@kept_with_spec
def _of_action(spec: PodSpec, action: Action) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(c for c in spec.topology_spread if c.when_unsatisfiable == action)


@lru_cache(maxsize=4096)
def _with_selector(
    defaults: tuple[TopologySpreadConstraint, ...], selector: LabelSelector
) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(with_selector(each, selector) for each in defaults)


def _evened(scores: Scores, ignored: NDArray[np.bool_] | None) -> Scores:
    """Scores from 0 to 100: the node with the fewest matching pods gets 100, an ignored node 0 (NormalizeScore in
    scoring.go, v1.36)."""
    counted = scores if ignored is None else scores[~ignored]
    most = int(np.maximum.reduce(counted, initial=0))
    if most == 0:
        evened = np.full_like(scores, MAX_NODE_SCORE)
    elif most < len(scores):
        # The raw scores are whole numbers from 0 to `most`, fewer than nodes: converting each number once is faster.
        evened = (MAX_NODE_SCORE * (most + int(np.minimum.reduce(counted)) - np.arange(most + 1)) // most).take(scores)
    else:
        evened = MAX_NODE_SCORE * (most + int(np.minimum.reduce(counted)) - scores) // most
    return evened if ignored is None else np.where(ignored, 0, evened)


def _problem(constraints: tuple[TopologySpreadConstraint, ...]) -> str:
    return next((c.selector.problem for c in constraints if c.selector.problem), "")
