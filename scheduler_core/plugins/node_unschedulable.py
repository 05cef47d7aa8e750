"""Refuses cordoned nodes, unless the pod tolerates the taint of a cordon."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable
from scheduler_core.model.node import UNSCHEDULABLE_TAINT_KEY
from scheduler_core.model.pod import Pod
from scheduler_core.model.taints import NO_SCHEDULE, Taint, tolerated
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value

_CORDONED: Final = unresolvable("node(s) were unschedulable")
_TAINT: Final = Taint(UNSCHEDULABLE_TAINT_KEY, "", NO_SCHEDULE)


class NodeUnschedulable(Value):
    """Checks spec.unschedulable; TaintToleration checks the taint."""

    name: ClassVar[str] = "NodeUnschedulable"

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        return _CORDONED if node_info.node.unschedulable and not tolerated(_TAINT, pod.spec.tolerations) else SUCCESS

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002
        cordoned = nodes.take(nodes.snapshot.columns.unschedulable)
        is_free = pod.spec.tolerations and tolerated(_TAINT, pod.spec.tolerations)
        return Refusals(np.zeros_like(cordoned) if is_free else cordoned, {1: _CORDONED})
