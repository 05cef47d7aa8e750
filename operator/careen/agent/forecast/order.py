"""The request to a forecast's child process, which reads it from its standard input. This module is separate from the
child, so that the caller loads none of the child's modules."""

from __future__ import annotations

import json
from typing import Any

from scheduler_core.values import Value

AHEAD = "--ahead"
"""The argument of a child that is started before its request. The child's memory limit in bytes follows."""


class NodesToAdd(Value):
    """`count` additional nodes. Each is like the named Node, or as described in the manifest."""

    count: int
    name: str = ""
    manifest: dict[str, Any] | None = None


class ForecastRequest(Value, kw_only=True):
    """The nodes to drain, and the source of the cluster's state: the API server or a file."""

    nodes: tuple[str, ...]
    """The nodes to drain together: none of them receives pods of another."""
    kubeconfig: str
    memory_bytes: int
    scheduler_config: str
    """The text of a KubeSchedulerConfiguration; empty for the default profile."""
    may_name_files: bool = False
    """Whether `scheduler_config` may name certificate files, which the child opens."""
    context: str = ""
    """The kubeconfig's context; empty for its current context."""
    dump: str = ""
    """Path of a file of `careen snapshot`, to be read instead of the API server."""
    drain_pod_selector: str = ""
    """The drain evicts only pods that match; empty: all pods that a drain moves."""
    more_nodes: NodesToAdd | None = None
    """The nodes to add in the simulation, for the pods that find no room."""
    suggests_nodes: bool = False
    """Whether to search for nodes that would take the pods without room. This takes time: only commands ask for it."""

    @property
    def wants_more_memory(self) -> str:
        """The sentence that says that the simulation needs more memory than its limit."""
        return (
            f"the simulation needs more than {self.memory_bytes // 2**20} MiB: raise --forecast-memory and "
            "the container's limit"
        )

    def to_json(self) -> bytes:
        """Returns the request as JSON for the child's standard input."""
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
                "moreNodes": self.more_nodes
                and (self.more_nodes.count, self.more_nodes.name, self.more_nodes.manifest),
                "suggestsNodes": self.suggests_nodes,
            }
        ).encode()

    @classmethod
    def from_json(cls, text: str) -> ForecastRequest:
        """Parses the request from the child's standard input."""
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
            more_nodes=NodesToAdd(*order["moreNodes"]) if order["moreNodes"] else None,
            suggests_nodes=order["suggestsNodes"],
        )
