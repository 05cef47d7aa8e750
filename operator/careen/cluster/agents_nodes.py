"""Finds the Nodes of careen's agents for an agent that may get Nodes but not list them, as with kured's roles. It reads
their names from the agents' pods, so a node without an agent is not found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from careen.cluster import objects
from careen.cluster.nodes import NODES, list_nodes, read_node
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import Withheld
from careen.cluster.wire.transport import Request
from careen.core.facts.keys import REBOOT_LABEL
from careen.core.facts.observation import NodeView

_AT_ONCE = 8  # half of the client's threads


class AgentsNodes:
    """Lists the Nodes, or reads each one to which an agent's pod is bound."""

    def __init__(self, api: ClusterApi, *, own: str, namespace: str, daemonset: str) -> None:
        """The Node `own` is always read: the list of pods may lack the agent's own pod."""
        self._api = api
        self._own = own
        self._namespace = namespace
        self._daemonset = daemonset

    @property
    def may_be_listed(self) -> bool:
        """Only a list of all Nodes proves that a Node does not exist."""
        return not self._api.withheld(Request(method="GET", path=NODES))

    async def read(self, *, reboot_label: Sequence[str] = ()) -> tuple[NodeView, ...]:
        """All Nodes, or those whose reboot label has one of these values. Raises `ClusterError`."""
        try:
            return await list_nodes(self._api, reboot_label=reboot_label)
        except Withheld:
            nodes = await self._read_each(await self._names())
        return tuple(node for node in nodes if not reboot_label or node.labels.get(REBOOT_LABEL) in reboot_label)

    async def _names(self) -> list[str]:
        pods = await self._api.items(f"/api/v1/namespaces/{self._namespace}/pods", objects.Pod)
        ours = (pod.spec.node_name for pod in pods if self._is_agent(pod))
        return sorted({self._own, *(name for name in ours if name)})

    def _is_agent(self, pod: objects.Pod) -> bool:
        owner = objects.controller_of(pod.metadata)
        return (owner.kind, owner.name) == ("DaemonSet", self._daemonset)

    async def _read_each(self, names: Iterable[str]) -> list[NodeView]:
        few = asyncio.Semaphore(_AT_ONCE)

        async def read_one(name: str) -> object:
            async with few:
                return await read_node(self._api, name)

        return [node for node in await asyncio.gather(*map(read_one, names)) if isinstance(node, NodeView)]
