"""Reads the claim from the record on the agent's Node. The agent needs this claim if it starts and cannot read its
settings or the lock. A node with a claim must first come back into service."""

from __future__ import annotations

from careen.cluster.nodes import read_node
from careen.cluster.wire.api import ClusterApi
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress
from scheduler_core.values import Value


class RecordedClaim(Value, kw_only=True):
    """A claim in the Node's record.

    `settings` is the text that `last_good.py` wrote. `lock_annotation` is the key of the annotation that holds the
    claim's lock.
    """

    id: str
    node_uid: str
    settings: str
    lock_annotation: str


def claim_of(node: NodeView) -> RecordedClaim | None:
    """Returns the claim in the Node's record. Returns None if there is none, or if the record is unreadable, because
    the agent must not act on an unreadable record."""
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
