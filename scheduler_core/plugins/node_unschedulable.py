"""Refuses cordoned nodes, unless the pod tolerates the taint of a cordon (`node.kubernetes.io/unschedulable`)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Final

from scheduler_core.framework.by_value import refusals_by_value
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable
from scheduler_core.model.node import UNSCHEDULABLE_TAINT_KEY
from scheduler_core.model.pod import Pod
from scheduler_core.model.taints import NO_SCHEDULE, Taint, Toleration, tolerated
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value

_CORDONED: Final = unresolvable("node(s) were unschedulable")
_TAINT: Final = Taint(UNSCHEDULABLE_TAINT_KEY, "", NO_SCHEDULE)


class NodeUnschedulable(Value):
    """Reads spec.unschedulable; TaintToleration reads the taint."""

    name: ClassVar[str] = "NodeUnschedulable"
    filters_by_spec: ClassVar[bool] = True

    def node_key(self, pod: Pod) -> Hashable:
        return pod.spec.tolerations

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        return _verdict(node_info.node.unschedulable, pod.spec.tolerations)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002
        tolerations = pod.spec.tolerations
        cordons = nodes.columns.cordons
        return refusals_by_value(
            nodes, cordons, lambda is_cordoned: _verdict(is_cordoned, tolerations), (self.name, tolerations)
        )


def _verdict(is_cordoned: bool, tolerations: tuple[Toleration, ...]) -> Verdict:
    return _CORDONED if is_cordoned and not tolerated(_TAINT, tolerations) else SUCCESS
