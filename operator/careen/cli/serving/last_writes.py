"""When the agents of dead holders last wrote, for reports about all nodes."""

from __future__ import annotations

from collections.abc import Sequence

from careen.cluster.nodes import read_node
from careen.cluster.wire.api import ClusterApi
from careen.core.facts.observation import NodeView
from careen.core.lock.content import LockContent
from careen.report.lock_report import LockState
from scheduler_core.values import replace_value as replace

_MOST_READ = 5


async def with_last_writes(api: ClusterApi, nodes: Sequence[NodeView], lock: LockState) -> tuple[NodeView, ...]:
    """When the agents of holders that are not Ready last wrote: one request for each of the first few, because lists
    leave that out."""
    names = frozenset(lock.holders) if isinstance(lock, LockContent) else frozenset()
    dead = [node.name for node in nodes if node.name in names and not node.ready][:_MOST_READ]
    found = {name: view for name in dead if isinstance(view := await read_node(api, name), NodeView)}
    return tuple(
        replace(node, agent_wrote=found[node.name].agent_wrote) if node.name in found else node for node in nodes
    )
