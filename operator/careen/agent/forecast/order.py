"""The request that the parent writes to the stdin of a forecast's child process. It has a module of its own, so that
the parent need not import the child's modules, which need much memory."""

from __future__ import annotations

import json
from typing import Any

from careen.agent.forecast.container_memory import MemoryLeft
from scheduler_core.values import Value

AHEAD = "--ahead"
"""The first argument of a child that starts before its request is known. The second is its memory limit in bytes."""


class NodesToAdd(Value):
    """Additional nodes to simulate: `count` copies of the Node called `name`, or of the Node in `manifest`. `price`
    of one, for the cheapest choice among several."""

    count: int
    name: str = ""
    manifest: dict[str, Any] | None = None
    price: float = 1.0


class ForecastRequest(Value, kw_only=True):
    """The nodes to drain, and the source of the cluster's state: the API server or a file."""

    nodes: tuple[str, ...]
    """Drained together: no pod moves from one of them to another."""
    kubeconfig: str
    memory_bytes: int
    scheduler_config: str
    """A KubeSchedulerConfiguration; empty for the default profile."""
    may_name_files: bool = False
    """Whether `scheduler_config` may name certificate files, which the child opens."""
    context: str = ""
    """Empty for the kubeconfig's current context."""
    dump: str = ""
    """A file of `careen snapshot`, read instead of the API server."""
    drain_pod_selector: str = ""
    """The label selector of the pods to evict; empty for all labels."""
    slow_pod_selectors: tuple[str, ...] = ()
    """The label selectors of --slow-pod-selector."""
    more_nodes: tuple[NodesToAdd, ...] = ()
    """Added together for pods that find no room."""
    suggests_nodes: bool = False
    """Whether to search for nodes on which such pods would fit. Only commands do, because it is slow."""

    def wants_more_memory(self, room: MemoryLeft | None = None) -> str:
        """The sentence for a simulation that needs more memory than its limit, or than the container leaves."""
        if room is not None and room.left_bytes < self.memory_bytes:
            return (
                f"the simulation needs more than the {room.left_bytes // 2**20} MiB that the container's memory limit "
                f"of {room.limit_bytes // 2**20} MiB leaves it: raise the container's limit"
            )
        return (
            f"the simulation needs more than {self.memory_bytes // 2**20} MiB: raise --forecast-memory and "
            "the container's limit"
        )

    def to_json(self) -> bytes:
        """For the child's stdin."""
        return json.dumps(
            {
                "nodes": self.nodes,
                "kubeconfig": self.kubeconfig,
                "context": self.context,
                "memory": self.memory_bytes,
                "schedulerConfig": self.scheduler_config,
                "mayNameFiles": self.may_name_files,
                "dump": self.dump,
                "drainPodSelector": self.drain_pod_selector,
                "slowPodSelectors": self.slow_pod_selectors,
                "moreNodes": [(each.count, each.name, each.manifest, each.price) for each in self.more_nodes],
                "suggestsNodes": self.suggests_nodes,
            }
        ).encode()

    @classmethod
    def from_json(cls, text: str) -> ForecastRequest:
        """Parses the child's stdin."""
        order = json.loads(text)
        return cls(
            nodes=tuple(order["nodes"]),
            kubeconfig=order["kubeconfig"],
            context=order["context"],
            memory_bytes=order["memory"],
            scheduler_config=order["schedulerConfig"],
            may_name_files=order["mayNameFiles"],
            dump=order["dump"],
            drain_pod_selector=order["drainPodSelector"],
            slow_pod_selectors=tuple(order["slowPodSelectors"]),
            more_nodes=tuple(NodesToAdd(*each) for each in order["moreNodes"]),
            suggests_nodes=order["suggestsNodes"],
        )
