"""Counts how many pods a drain of this node would evict, and how many of these must stay in the node's zone. The agent
writes both numbers on the Node, because the order in which waiting nodes begin their drains depends on the numbers.

An agent counts only the pods of its own node, with one list request for which the API server has an index. It counts
when the node needs a reboot and no cheap gate refuses the reboot. The agent then sets the label `careen.dev/reboot` to
`ready`, and the same patch contains the numbers. With --order=fewest-moves the agent counts again from time to time,
because pods come and go with each drain. It counts more often while the node is in the line of waiting nodes in the
lock.
"""

from __future__ import annotations

from careen.core.drain import drain_plan
from careen.core.facts import keys
from careen.core.facts.policy import Order
from careen.core.lock import order
from careen.core.lock.content import LockContent
from careen.core.situation import Situation

NAMED_SECONDS = 15.0  # about the time of one node's drain and reboot: each drain moves pods, so counts change
OTHERS_SECONDS = 1800.0  # 5,000 nodes: three lists a second


def is_due(situation: Situation, content: LockContent) -> bool:
    """Whether the agent has to count, in this round of its loop, the pods that a drain of the node would evict."""
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
    """Return two annotations: how many pods a drain would evict, and how many of these pods must stay in the zone. The
    second annotation is removed if the number is 0. Leave out an annotation that the Node already has with the same
    value. Return nothing if the pods could not be listed."""
    pods = situation.seen.pods
    if not isinstance(pods, tuple):
        return {}
    evicted = drain_plan.to_evict(pods, situation.policy.drain)
    in_zone = sum(pod.spreads_over_zones for pod in evicted)
    counted = {keys.MOVES: str(len(evicted)), keys.MOVES_IN_ZONE: str(in_zone) if in_zone else None}
    return {key: value for key, value in counted.items() if situation.node.annotations.get(key) != value}
