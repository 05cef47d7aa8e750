"""The claim in the Node's record. An agent that starts and cannot read its settings or the lock needs it: a holder must
first come back into service."""

from __future__ import annotations

from careen.cluster.nodes import read_node
from careen.cluster.wire.api import ClusterApi
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress
from scheduler_core.values import Value


class RecordedClaim(Value, kw_only=True):
    """A claim as the record has it. `settings` is the text of `last_good.py`; `lock_annotation` the key of the lock's
    annotation."""

    id: str
    node_uid: str
    settings: str
    lock_annotation: str


def claim_of(node: NodeView) -> RecordedClaim | None:
    """None without a claim, and if the record is unreadable, because the agent must not act on that."""
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
    """None if the Node does not exist. Raises `ClusterError`."""
    found = await read_node(api, name)
    return found if isinstance(found, NodeView) else None
