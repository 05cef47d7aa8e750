"""What a PostFilter plugin gets after a search that found no node."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

from msgspec import field

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.diagnosis import Diagnosis
from scheduler_core.framework.verdict import Verdict
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value


class Retrial(Protocol):
    """Filters one node again while preemption removes pods from it and adds them back."""

    def filter_node_with_nominated(
        self,
        state: CycleState,
        pod: Pod,
        node_info: NodeInfo,
        nominated: tuple[Pod, ...],
        *,
        has_passed: bool = False,
    ) -> Verdict:
        """SUCCESS if the pod fits both with and without the pods nominated to the node. `has_passed`: the node passed
        with other pods."""
        ...

    def question(self, state: CycleState, pod: Pod) -> Hashable | None:
        """Equal for pods that get the same verdict on every node with the same pods, while objects of other kinds stay
        the same. None if the verdict may depend on more, such as the pods of other nodes."""
        ...

    def counts_pods(self, state: CycleState) -> bool:
        """Whether `add_pod` and `remove_pod` have an effect."""
        ...

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node_info: NodeInfo) -> Verdict:
        """Tells the plugins that `other` was added to the node."""
        ...

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node_info: NodeInfo) -> Verdict:
        """Tells the plugins that `other` was removed from the node."""
        ...


class FailedSearch(Value, kw_only=True):
    """`nominated`: pods by the name of the node to which they are nominated."""

    nodes: NodeList
    diagnosis: Diagnosis
    runner: Retrial
    nominated: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
