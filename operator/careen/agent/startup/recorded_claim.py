"""Reads the claim recorded on the agent's Node, for a start without settings or lock: a node with a claim must first
come back into service."""

from __future__ import annotations

from careen.cluster.nodes import read_node
from careen.cluster.wire.api import ClusterApi
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress
from scheduler_core.values import Value


class RecordedClaim(Value, kw_only=True):
    """A claim recorded on the Node.

    `settings`: as `last_good.py` wrote them. `lock_annotation`: the annotation that holds the claim's lock."""

    id: str
    node_uid: str
    settings: str
    lock_annotation: str


def claim_of(node: NodeView) -> RecordedClaim | None:
    """Returns the claim in the Node's record; None if there is none, or if the record is unreadable. With an unreadable
    record the agent must not act."""
    record = node.written
    if not isinstance(record, Progress) or not record.claim:
        return None
    return RecordedClaim(
        id=record.claim,
        node_uid=node.uid,
        settings=node.annotations.get(keys.SETTINGS, ""),
        lock_annotation=record.lock.partition("/")[2],
    )


async def own_node(api: ClusterApi, name: str) -> NodeView | None:
    """Reads the Node; None if it does not exist. Raises `ClusterError`."""
    found = await read_node(api, name)
    return found if isinstance(found, NodeView) else None
