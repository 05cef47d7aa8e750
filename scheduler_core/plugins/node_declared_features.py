"""Refuses nodes whose kubelet does not declare a feature that the pod needs (KEP-5328)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from scheduler_core.framework.by_value import refusals_by_value
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PreFilterResult
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, unresolvable
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value

_LACKING: Final = unresolvable("node(s) didn't match Pod's required features")

# What a pod's spec can require (component-helpers/nodedeclaredfeatures/features, v1.36). Other declared features matter
# only for updates of running pods.
_NEEDED_BY: Final[Mapping[str, Callable[[PodSpec], bool]]] = {
    "RestartAllContainersOnContainerExits": lambda spec: any(
        c.may_restart_all for c in (*spec.containers, *spec.init_containers)
    ),
    "UserNamespacesHostNetworkSupport": lambda spec: spec.host_network and not spec.host_users,
}


def needed_features(spec: PodSpec) -> frozenset[str]:
    """What a node must declare to run the pod."""
    return frozenset(feature for feature, is_needed in _NEEDED_BY.items() if is_needed(spec))


class NeededFeatures(Value):
    names: frozenset[str]


class NodeDeclaredFeatures(Value):
    """Almost every pod skips this plugin."""

    name: ClassVar[str] = "NodeDeclaredFeatures"

    def skips(self, spec: PodSpec) -> bool:
        return not needed_features(spec)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:  # noqa: ARG002
        if self.skips(pod.spec):
            return PreFilterResult(SKIP)
        state.write(NeededFeatures(needed_features(pod.spec)))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        return _verdict(node_info.node.declared_features, state.read(NeededFeatures).names)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002
        needed = state.read(NeededFeatures).names
        return refusals_by_value(
            nodes,
            nodes.columns.feature_sets,
            lambda declared: _verdict(declared, needed),
            (self.name, needed),
        )


def _verdict(declared: frozenset[str], needed: frozenset[str]) -> Verdict:
    return SUCCESS if needed <= declared else _LACKING
