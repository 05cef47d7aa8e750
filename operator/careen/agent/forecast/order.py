"""The request to a forecast's child process, sent through its standard input. Separate from the child, so that the
caller loads none of its modules."""

from __future__ import annotations

import json
from typing import Any

from scheduler_core.values import Value

AHEAD = "--ahead"
"""The argument of a child that is started before its request; its memory limit in bytes follows."""


class NodesToAdd(Value):
    """So many nodes like the one of that name, or as the manifest describes them."""

    count: int
    name: str = ""
    manifest: dict[str, Any] | None = None


class ForecastRequest(Value, kw_only=True):
    """The nodes to drain, and the source of the cluster's state: the API server or a file."""

    nodes: tuple[str, ...]
    """Drained together: none of them receives the others' pods."""
    kubeconfig: str
    memory_bytes: int
    scheduler_config: str
    """The text of a KubeSchedulerConfiguration; empty for the default profile."""
    may_name_files: bool = False
    """Whether that text may name certificate files, which the child opens."""
    context: str = ""
    """Of the kubeconfig; empty for its current one."""
    dump: str = ""
    """Path of a file of `careen snapshot`, which then replaces the API server."""
    drain_pod_selector: str = ""
    """Only pods that match are evicted; empty: all that a drain moves."""
    more_nodes: NodesToAdd | None = None
    """The question of what these nodes would do for the pods that find no room."""
    suggests_nodes: bool = False
    """Whether a note names nodes that would take the pods that find no room; people wait for that, agents do not."""

    @property
    def wants_more_memory(self) -> str:
        """What is said when it does not get by with `memory_bytes`."""
        return (
            f"the simulation needs more than {self.memory_bytes // 2**20} MiB: raise --forecast-memory and "
            "the container's limit"
        )

    def to_json(self) -> bytes:
        """For stdin."""
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
        """From stdin."""
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
