"""Reads the Node's progress annotation, in which the agent has recorded the node's claim in the lock. The agent needs
this claim if it starts and cannot read its settings or the lock: a node with a claim must first come back into
service."""

from __future__ import annotations

from careen.cluster.nodes import read_node
from careen.cluster.wire.api import ClusterApi
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress
from scheduler_core.values import Value


class RecordedClaim(Value, kw_only=True):
    """A claim in the lock, as recorded in the Node's progress annotation. `settings` is the text that `last_good.py`
    wrote. `lock_annotation` is the key of the DaemonSet's annotation that is the lock."""

    id: str
    node_uid: str
    settings: str
    lock_annotation: str


def claim_of(node: NodeView) -> RecordedClaim | None:
    """Returns the claim in the Node's progress annotation. Returns None if that annotation contains no claim. Also
    returns None if the annotation is unreadable, because then the agent must not act on it."""
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
    """Reads the agent's own Node. Returns None if the Node does not exist. Raises `ClusterError`."""
    found = await read_node(api, name)
    return found if isinstance(found, NodeView) else None
