"""The claim recorded on the agent's Node, for a start without settings or lock: such a node must be given back
first."""

from __future__ import annotations

from careen.cluster.nodes import read_node
from careen.cluster.wire.api import ClusterApi
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress
from scheduler_core.values import Value


class RecordedClaim(Value, kw_only=True):
    """A claim on the Node.

    `settings`: as `last_good.py` wrote them; `lock_annotation`: where the claim's lock is kept.
    """

    id: str
    node_uid: str
    settings: str
    lock_annotation: str


def claim_of(node: NodeView) -> RecordedClaim | None:
    """The claim in the Node's record; also None if the record is unreadable: then the agent must not act on it."""
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
    """The Node; None if there is none. Raises `ClusterError`."""
    found = await read_node(api, name)
    return found if isinstance(found, NodeView) else None
