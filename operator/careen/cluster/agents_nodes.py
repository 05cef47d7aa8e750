"""Finds the Nodes on which careen's agents run, for an agent that has the right to get Nodes but not to list them, as
with kured's roles.

The agent reads the names of these Nodes from the agents' pods in the DaemonSet's namespace. A node without an agent is
not found.
"""

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
    """Lists the Nodes. If the agent may not list them, reads each Node to which the pod of an agent is bound."""

    def __init__(self, api: ClusterApi, *, own: str, namespace: str, daemonset: str) -> None:
        """`own` is the name of this agent's node. The agent reads its own Node in any case, because the list of pods
        may lack its own pod."""
        self._api = api
        self._own = own
        self._namespace = namespace
        self._daemonset = daemonset

    @property
    def may_be_listed(self) -> bool:
        """Whether the agent may list all Nodes. Only a list of all Nodes proves that a Node does not exist."""
        return not self._api.withheld(Request(method="GET", path=NODES))

    async def read(self, *, reboot_label: Sequence[str] = ()) -> tuple[NodeView, ...]:
        """Returns every Node, or the Nodes whose reboot label has one of the given values. Raises `ClusterError`."""
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
