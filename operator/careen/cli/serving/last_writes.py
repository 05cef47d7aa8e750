"""What lists of Nodes leave out and reports about all nodes show: when the agents of dead holders last wrote, and who
cordoned a node."""

from __future__ import annotations

from collections.abc import Sequence

from careen.cluster.nodes import read_node
from careen.cluster.wire.api import ClusterApi
from careen.core.facts.observation import NodeView
from careen.core.lock.content import LockContent
from careen.core.node.cordons import is_foreign
from careen.report.lock_report import LockState
from scheduler_core.values import replace_value as replace

_MOST_READ = 5


async def with_last_writes(api: ClusterApi, nodes: Sequence[NodeView], lock: LockState) -> tuple[NodeView, ...]:
    """When the agents of holders that are not Ready last wrote, and who cordoned nodes by hand: one request for each of
    the first few of both."""
    names = frozenset(lock.holders) if isinstance(lock, LockContent) else frozenset()
    dead = [node.name for node in nodes if node.name in names and not node.ready][:_MOST_READ]
    strange = [node.name for node in nodes if is_foreign(node)][:_MOST_READ]
    found = {
        name: view
        for name in dict.fromkeys((*dead, *strange))
        if isinstance(view := await read_node(api, name), NodeView)
    }
    return tuple(
        replace(
            node,
            agent_wrote=found[node.name].agent_wrote,
            cordoned_by=found[node.name].cordoned_by,
            cordoned_at=found[node.name].cordoned_at,
        )
        if node.name in found
        else node
        for node in nodes
    )
