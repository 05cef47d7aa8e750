"""Refuses nodes where a host port of the pod (containers and sidecars) is in use."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PreFilterResult
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, unschedulable
from scheduler_core.model.pod import HostPort, Pod, PodSpec
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.tallies import HOST_PORTS
from scheduler_core.values import Value

_TAKEN: Final = unschedulable("node(s) didn't have free ports for the requested pod ports")


class WantedPorts(Value):
    ports: tuple[HostPort, ...]


class NodePorts(Value):
    name: ClassVar[str] = "NodePorts"
    filters_by_spec: ClassVar[bool] = True

    def skips(self, spec: PodSpec) -> bool:
        return not spec.host_ports

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:  # noqa: ARG002
        if self.skips(pod.spec):
            return PreFilterResult(SKIP)
        state.write(WantedPorts(pod.spec.host_ports))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        used = node_info.used_ports
        return (
            _TAKEN
            if any(wanted.conflicts_with(taken) for wanted in state.read(WantedPorts).ports for taken in used)
            else SUCCESS
        )

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals | None:  # noqa: ARG002
        ports = state.read(WantedPorts).ports
        taken = np.zeros(len(nodes.columns), dtype=bool)
        for port, users in nodes.snapshot.tally(HOST_PORTS).items():
            if any(wanted.conflicts_with(port) for wanted in ports):
                taken |= users > 0
        return Refusals(nodes.take(taken), {1: _TAKEN})


class NodePortsOfContainers(NodePorts):
    """NodePorts until Kubernetes 1.32, which counts no ports of sidecars."""

    def skips(self, spec: PodSpec) -> bool:
        return not _of_containers(spec)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:  # noqa: ARG002
        if self.skips(pod.spec):
            return PreFilterResult(SKIP)
        state.write(WantedPorts(_of_containers(pod.spec)))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        used = [port for other in node_info.pods for port in _of_containers(other.spec)]
        wanted = state.read(WantedPorts).ports
        return _TAKEN if any(port.conflicts_with(taken) for port in wanted for taken in used) else SUCCESS

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals | None:  # noqa: ARG002
        return None  # the snapshot's counts have the ports of sidecars too


def _of_containers(spec: PodSpec) -> tuple[HostPort, ...]:
    return tuple(port for container in spec.containers for port in container.host_ports)
