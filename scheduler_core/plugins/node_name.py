"""Refuses all nodes except the one in the pod's spec.nodeName, if this field is set."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PreFilterResult
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value

_ANOTHER: Final = unresolvable("node(s) didn't match the requested node name")
_ALL_NODES: Final = PreFilterResult()


class NodeName(Value):
    """Normally a pod with spec.nodeName bypasses the scheduler; this is for one that is scheduled nevertheless."""

    name: ClassVar[str] = "NodeName"
    filters_by_spec: ClassVar[bool] = True

    def node_key(self, pod: Pod) -> Hashable:
        return pod.node_name

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        return _ANOTHER if pod.node_name and pod.node_name != node_info.name else SUCCESS

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals | None:  # noqa: ARG002
        return None if pod.node_name else Refusals(np.zeros(len(nodes), dtype=bool), {})


class NarrowingNodeName(NodeName):
    """NodeName since Kubernetes 1.37: only the requested node is searched."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:  # noqa: ARG002
        return PreFilterResult(node_names=frozenset((pod.node_name,))) if pod.node_name else _ALL_NODES
