"""One node with its pods and the sums of their requests: the input of a plugin that handles one node per call.

Immutable: adding or removing a pod gives another value, so preemption can try the removal of many pods on one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from msgspec import field

from scheduler_core.model.kept_with_spec import kept_with_spec
from scheduler_core.model.node import Node
from scheduler_core.model.pod import HostPort, Pod, PodSpec
from scheduler_core.model.requests import CURRENT_RULES, RequestRules, Requests, of_running_requests
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler_core.snapshot.nodes.node_images import ImageState
from scheduler_core.values import Value, replace_value

_Amounts = tuple[Mapping[str, int], int, int]
"""By resource, and for the score cpu and memory with their defaults."""
_NO_IMAGES: Mapping[str, ImageState] = {}


class NodeInfo(Value, kw_only=True):
    """One node with its pods. Requested amounts are in millis for cpu and in whole units otherwise.

    `used_ports` are the host ports of its pods, `cluster_size` is the snapshot's number of nodes. `cluster_images` has
    the images of all nodes; `image_state` returns only those of this node.
    """

    node: Node
    row: int = 0
    rules: RequestRules = CURRENT_RULES
    pods: tuple[Pod, ...] = ()
    requested: Mapping[str, int] = field(default_factory=dict)
    nonzero_cpu: int = 0
    nonzero_memory: int = 0
    cluster_images: Mapping[str, ImageState] = field(default_factory=dict)
    cluster_size: int = 1
    used_ports: frozenset[HostPort] = frozenset()

    @classmethod
    def of(
        cls,
        node: Node,
        pods: Iterable[Pod] = (),
        *,
        row: int = 0,
        rules: RequestRules = CURRENT_RULES,
        cluster_images: Mapping[str, ImageState] = _NO_IMAGES,
        cluster_size: int = 1,
    ) -> Self:
        """The node with these pods and the sums of their requests."""
        requested: Counter[str] = Counter()
        nonzero_cpu = nonzero_memory = 0
        ports: set[HostPort] = set()
        pods = tuple(pods)
        for pod in pods:
            ports.update(_ports(pod.spec))
            amounts, cpu, memory = _amounts(pod, rules)
            requested.update(amounts)
            nonzero_cpu += cpu
            nonzero_memory += memory
        return cls(
            node=node,
            row=row,
            rules=rules,
            pods=pods,
            requested=requested,
            nonzero_cpu=nonzero_cpu,
            nonzero_memory=nonzero_memory,
            cluster_images=cluster_images,
            cluster_size=cluster_size,
            used_ports=frozenset(ports),
        )

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def allowed_pods(self) -> int:
        return self.node.allocatable.get(PODS, 0)

    def image_state(self, name: str) -> ImageState | None:
        """The image's size and how many nodes have it; None if this node does not have it."""
        return self.cluster_images.get(name) if any(name in image.names for image in self.node.images) else None

    def with_pod(self, pod: Pod) -> Self:
        return self._changed((*self.pods, pod), (pod,), 1, self.used_ports | _ports(pod.spec))

    def without_pod(self, pod: Pod) -> Self:
        """The node without the pod of this key. Raises ValueError if it is not there.

        The pod's host ports become free, even if another pod on the node uses the same port: the scheduler keeps the
        ports as a set (HostPortInfo.Remove, v1.36).
        """
        remaining = tuple(
            [other for other in self.pods if other is not pod]
        )  # usually the same object, so that keys need not be built
        if len(remaining) == len(self.pods):
            remaining = tuple(other for other in self.pods if other.key != pod.key)
        if len(remaining) == len(self.pods):
            raise ValueError(f"pod {pod.key} is not on node {self.name}")
        return self._changed(remaining, (pod,), -1, self.used_ports - _ports(pod.spec))

    def without_these(self, pods: Sequence[Pod]) -> Self:
        """`without_pod` of each of `pods`, which must be objects of `self.pods`."""
        gone = set(map(id, pods))
        remaining = tuple([other for other in self.pods if id(other) not in gone])
        return self._changed(remaining, pods, -1, self.used_ports.difference(*(_ports(pod.spec) for pod in pods)))

    def _changed(self, pods: tuple[Pod, ...], changed: Sequence[Pod], sign: int, ports: frozenset[HostPort]) -> Self:
        requested = dict(self.requested)
        nonzero_cpu, nonzero_memory = self.nonzero_cpu, self.nonzero_memory
        for pod in changed:
            amounts, cpu, memory = _amounts(pod, self.rules)
            for name, amount in amounts.items():
                requested[name] = requested.get(name, 0) + sign * amount
            nonzero_cpu += sign * cpu
            nonzero_memory += sign * memory
        return replace_value(
            self,
            pods=pods,
            requested=requested,
            nonzero_cpu=nonzero_cpu,
            nonzero_memory=nonzero_memory,
            used_ports=ports,
        )


@kept_with_spec
def _ports(spec: PodSpec) -> frozenset[HostPort]:
    return frozenset(spec.host_ports)


@of_running_requests
def _amounts(requests: Requests) -> _Amounts:
    amounts = {
        CPU: requests.cpu,
        MEMORY: requests.memory,
        EPHEMERAL_STORAGE: requests.ephemeral_storage,
        **requests.scalars,
    }
    return amounts, requests.nonzero_cpu, requests.nonzero_memory
