"""Refuses a node because of the pods in its domain (zone, host, …): a pod that the incoming pod's affinity requires is
missing, or a pod that its anti-affinity excludes is present, or the anti-affinity of a present pod excludes the
incoming pod.

Also scores nodes by the preferred terms of the incoming and the existing pods. affinity_counts.py counts the pods.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import InterPodAffinityArgs
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import MAX_NODE_SCORE, PreFilterResult, Scores
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.scoring.affinity_counts import (
    AffinityCounts,
    AffinityPull,
    Reach,
    count_required,
    count_scores,
)
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, unresolvable, unschedulable
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.tallies import PullsByKey
from scheduler_core.values import Value

_NOT_NEAR: Final = unresolvable("node(s) didn't match pod affinity rules")
_TOO_NEAR: Final = unschedulable("node(s) didn't match pod anti-affinity rules")
_UNWANTED: Final = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


class InterPodAffinity(Value):
    args: InterPodAffinityArgs
    kube_version: KubeVersion
    name: ClassVar[str] = "InterPodAffinity"

    def _reach(self, nodes: NodeList) -> Reach:
        return Reach(
            nodes.snapshot, negative_selectors_reach_all=self.kube_version.negative_namespace_selector_matches_all
        )

    # ---- filter ----

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:
        problem = _problem(pod)
        if problem:
            return PreFilterResult(unresolvable(f"parsing pod: {problem}"))
        reach = self._reach(nodes)
        pulls = reach.pulls_on(pod)
        state.write(_Pulls(pulls))
        counts = count_required(reach, pod, pulls)
        if counts is None:
            return PreFilterResult(SKIP)
        state.write(counts)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        counts, labels = state.read(AffinityCounts), node_info.node.labels
        if not counts.near_enough(labels):
            return _NOT_NEAR
        if counts.too_near(labels):
            return _TOO_NEAR
        return _UNWANTED if counts.unwanted(labels) else SUCCESS

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002
        counts = state.read(AffinityCounts)
        codes = np.zeros(len(nodes.columns), dtype=np.int8)
        if counts.keeps_off:
            np.copyto(codes, 3, where=counts.rows_unwanted)
        if counts.off:
            np.copyto(codes, 2, where=counts.rows_too_near)
        if counts.near:
            np.copyto(codes, 1, where=~counts.rows_near_enough(len(codes)))
        return Refusals(nodes.take(codes), {1: _NOT_NEAR, 2: _TOO_NEAR, 3: _UNWANTED})

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node_info: NodeInfo) -> Verdict:
        state.write(state.read(AffinityCounts).changed(pod, added, node_info.row, 1))
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node_info: NodeInfo) -> Verdict:
        state.write(state.read(AffinityCounts).changed(pod, removed, node_info.row, -1))
        return SUCCESS

    # ---- score ----

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict:
        has_own = bool(pod.spec.pod_affinity.preferred or pod.spec.pod_anti_affinity.preferred)
        if self.args.ignore_preferred_terms_of_existing_pods and not has_own:
            return SKIP
        counted = state.find(_Pulls)
        if counted is not None and not counted.by_key and not has_own:
            return SKIP
        reach = self._reach(nodes)
        pulls = reach.pulls_on(pod) if counted is None else counted.by_key
        pull = count_scores(reach, pod, pulls, self.args.hard_pod_affinity_weight)
        if pull is None:
            return SKIP
        state.write(pull)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:  # noqa: ARG002
        return state.read(AffinityPull).at(node_info.node.labels)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores:  # noqa: ARG002
        return state.read(AffinityPull).scores(nodes)

    def normalize(self, state: CycleState, pod: Pod, nodes: NodeList, scores: Scores) -> Scores:  # noqa: ARG002
        if not len(scores):
            return scores
        least, most = int(np.minimum.reduce(scores)), int(np.maximum.reduce(scores))
        if most == least:
            return np.zeros_like(scores)
        # Floating point in exactly this order: 29 of 100 then gives 28, as in the scheduler.
        shares = (scores - least) / float(most - least)
        shares *= float(MAX_NODE_SCORE)
        return shares.astype(np.int64)


class _Pulls(Value, eq=False):
    """The affinity terms of placed pods that select the incoming pod. PreFilter writes them, PreScore reads them."""

    by_key: PullsByKey


def _problem(pod: Pod) -> str:
    """Why the scheduler cannot parse the pod's affinity terms; "" if it can."""
    if not pod.spec.pod_affinity and not pod.spec.pod_anti_affinity:
        return ""
    both = (pod.spec.pod_affinity, pod.spec.pod_anti_affinity)
    terms = [*(t for a in both for t in a.required), *(w.term for a in both for w in a.preferred)]
    problems = (text for t in terms for text in (t.selector.problem, t.namespace_selector.problem))
    return next((text for text in problems if text), "")
