"""Counts how many pods a drain of this node would evict, and how many of these must stay in the zone. The order of the
line depends on both numbers, so the agent writes them on the Node.

The count is one list of the node's own pods, for which the API server has an index. The agent counts once no cheap gate
refuses: the patch that sets the label `ready` contains the numbers. With --order=fewest-moves it counts again from time
to time, because pods come and go with each drain, and more often while the node is in the line.
"""

from __future__ import annotations

from careen.core.drain import drain_plan
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, PodView
from careen.core.facts.policy import DrainPolicy, Order
from careen.core.lock import order
from careen.core.lock.content import LockContent
from careen.core.situation import Situation

NAMED_SECONDS = 15.0  # about the time of one node's drain and reboot: each drain moves pods, so counts change
OTHERS_SECONDS = 1800.0  # 5,000 nodes: three lists a second


def is_due(situation: Situation, content: LockContent) -> bool:
    """Whether the agent has to count the pods in this turn."""
    if situation.node.labels.get(keys.REBOOT_LABEL) != order.READY:
        return True
    if situation.policy.order is not Order.FEWEST_MOVES and keys.MOVES in situation.node.annotations:
        return False
    is_soon = (
        situation.node.name in content.line.names or keys.MOVES not in situation.node.annotations
    )  # the last list failed
    counted_at = situation.memory.moves_counted_at
    return counted_at is None or situation.seen.uptime - counted_at >= (NAMED_SECONDS if is_soon else OTHERS_SECONDS)


def number(node: NodeView, pods: tuple[PodView, ...], policy: DrainPolicy) -> dict[str, str | None]:
    """The annotations with both numbers, as far as they change the Node; the second is removed if its number is 0."""
    evicted = drain_plan.to_evict(pods, policy)
    in_zone = sum(pod.spreads_over_zones for pod in evicted)
    counted = {keys.MOVES: str(len(evicted)), keys.MOVES_IN_ZONE: str(in_zone) if in_zone else None}
    return {key: value for key, value in counted.items() if node.annotations.get(key) != value}
