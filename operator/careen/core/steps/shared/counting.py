"""Counts how many pods a drain of this node would evict, and writes the number on the Node for the order of the line.

A node counts its own pods when it becomes ready, with one list request for which the API server has an index. No node
lists another node's pods for this. The number is in the patch that labels the node ready. With --order=fewest-moves the
node counts again from time to time, because pods come and go with each drain. It counts more often while it is named.
"""

from __future__ import annotations

from careen.core.drain import drain_plan
from careen.core.facts import keys
from careen.core.facts.policy import Order
from careen.core.lock import order
from careen.core.lock.content import LockContent
from careen.core.situation import Situation

NAMED_SECONDS = 15.0  # about as long as a node takes: each drain moves pods
OTHERS_SECONDS = 1800.0  # 5,000 nodes: three lists a second


def is_due(situation: Situation, content: LockContent) -> bool:
    """Whether the node has to count its pods in this turn."""
    if situation.node.labels.get(keys.REBOOT_LABEL) != order.READY:
        return True
    if situation.policy.order is not Order.FEWEST_MOVES and keys.MOVES in situation.node.annotations:
        return False
    is_soon = (
        situation.node.name in content.line.names or keys.MOVES not in situation.node.annotations
    )  # the last list failed
    counted_at = situation.memory.moves_counted_at
    return counted_at is None or situation.seen.uptime - counted_at >= (NAMED_SECONDS if is_soon else OTHERS_SECONDS)


def number(situation: Situation) -> dict[str, str | None]:
    """Return the annotation with the number of pods that a drain would evict. Return nothing if the list of pods failed
    or if the Node already has that number."""
    pods = situation.seen.pods
    if not isinstance(pods, tuple):
        return {}
    count = str(len(drain_plan.to_evict(pods, situation.policy.drain)))
    return {} if situation.node.annotations.get(keys.MOVES) == count else {keys.MOVES: count}
