"""Refuses nodes with a NoSchedule or NoExecute taint that the pod does not tolerate. Prefers nodes with fewer
PreferNoSchedule taints that it does not tolerate."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.by_value import refusals_by_value, scores_by_value
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import Scores
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.scoring.normalizing import normalize_to_hundred
from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable
from scheduler_core.model.pod import Pod
from scheduler_core.model.taints import Taint, Toleration, count_unpreferred, first_untolerated
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value


class SoftTolerations(Value):
    """The score reads only tolerations for PreferNoSchedule or for any effect."""

    tolerations: tuple[Toleration, ...]


class TaintToleration(Value):
    """A node without untolerated PreferNoSchedule taints scores 100. The default weight is 3, so nearly every node gets
    300."""

    kube_version: KubeVersion
    name: ClassVar[str] = "TaintToleration"
    filters_by_spec: ClassVar[bool] = True
    prepares_by_spec: ClassVar[bool] = True

    def node_key(self, pod: Pod) -> Hashable:
        return pod.spec.tolerations

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        return self._verdict(node_info.node.taints, pod.spec.tolerations)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002
        tolerations = pod.spec.tolerations
        return refusals_by_value(
            nodes,
            nodes.columns.taint_sets,
            lambda taints: self._verdict(taints, tolerations),
            (self, tolerations),
        )

    def _verdict(self, taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> Verdict:
        taint = first_untolerated(taints, tolerations)
        if taint is None:
            return SUCCESS
        if self.kube_version.taint_refusal_names_the_taint:
            return unresolvable(f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}")
        return unresolvable("node(s) had untolerated taint(s)")

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict:  # noqa: ARG002
        state.write(SoftTolerations(pod.spec.tolerations))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:  # noqa: ARG002
        return count_unpreferred(node_info.node.taints, state.read(SoftTolerations).tolerations)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores:  # noqa: ARG002
        tolerations = state.read(SoftTolerations).tolerations
        return scores_by_value(
            nodes,
            nodes.columns.taint_sets,
            lambda taints: count_unpreferred(taints, tolerations),
            ("soft taints", tolerations),
        )

    def normalize(self, state: CycleState, pod: Pod, nodes: NodeList, scores: Scores) -> Scores:  # noqa: ARG002
        return normalize_to_hundred(scores, reverse=True)
