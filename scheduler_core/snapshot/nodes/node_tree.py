"""The order in which kube-scheduler searches the nodes, updated as nodes are added, changed and removed.

The scheduler keeps a list of nodes per zone, and the zones in the order in which it first saw them. A node that is
added again, or changes its zone, goes to the end of its zone's list. An empty zone is forgotten, and comes last if it
returns (pkg/scheduler/backend/cache/node_tree.go, v1.36).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.node import Node
from scheduler_core.values import Value, replace_value

Ints = NDArray[np.int64]
Element = TypeVar("Element", bound=np.generic)


class NodeTree(Value, eq=False):
    """The scheduler's tree of nodes. Times are numbers that increase with each change.

    Per row, `joined` is when the node joined its zone's list, and `zone_of` when its zone appeared. `zones` maps a zone
    to (when it appeared, number of nodes). `now` is the time of the next change.
    """

    zones: Mapping[str, tuple[int, int]]
    zone_of: Ints
    joined: Ints
    now: int

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> NodeTree:
        """The tree of a scheduler that received these nodes in this order."""
        counts: dict[str, int] = {}
        zone_of = np.empty(len(nodes), dtype=np.int64)
        place: dict[str, int] = {}
        for row, node in enumerate(nodes):
            zone = zone_key(node)
            zone_of[row] = place.setdefault(zone, len(place))
            counts[zone] = counts.get(zone, 0) + 1
        zones = {zone: (place[zone], count) for zone, count in counts.items()}
        return cls(zones, zone_of, np.arange(len(nodes), dtype=np.int64), max(len(nodes), len(place)))

    def order(self) -> NDArray[np.intp]:
        """All rows: the first node of each zone, then the second of each, and so on."""
        return one_of_each_zone(np.argsort(self.joined, kind="stable"), self.zone_of)

    def with_added(self, nodes: Sequence[Node]) -> NodeTree:
        """Adds these nodes in this order. Their rows follow the existing ones."""
        zones, appeared = dict(self.zones), []
        for now, node in enumerate(nodes, self.now):
            zone = zone_key(node)
            moment, count = zones.get(zone, (now, 0))
            zones[zone] = (moment, count + 1)
            appeared.append(moment)
        now = self.now + len(appeared)
        return NodeTree(
            zones,
            np.concatenate([self.zone_of, np.array(appeared, dtype=np.int64)]),
            np.concatenate([self.joined, np.arange(self.now, now, dtype=np.int64)]),
            now,
        )

    def without(self, row: int, node: Node) -> NodeTree:
        """The last node gets the row of the removed one, as in `ChangingNodes.without`."""
        return replace_value(
            self,
            zones=self._zones_without(zone_key(node)),
            zone_of=last_moved_to(self.zone_of, row),
            joined=last_moved_to(self.joined, row),
        )

    def with_replaced(self, changes: Mapping[int, tuple[Node, Node]]) -> NodeTree:
        """`changes` maps a row to (old node, new node). Only a change of the zone has an effect."""
        tree = self
        for row, (old, new) in changes.items():
            tree = tree._with_replaced(row, old, new)
        return tree

    def _with_replaced(self, row: int, old: Node, new: Node) -> NodeTree:
        before, after = zone_key(old), zone_key(new)
        if before == after:
            return self
        zones = self._zones_without(before)
        appeared, count = zones.get(after, (self.now, 0))
        zone_of, joined = self.zone_of.copy(), self.joined.copy()
        zone_of[row], joined[row] = appeared, self.now
        return NodeTree({**zones, after: (appeared, count + 1)}, zone_of, joined, self.now + 1)

    def _zones_without(self, zone: str) -> dict[str, tuple[int, int]]:
        zones = dict(self.zones)
        appeared, count = zones.pop(zone)
        if count > 1:
            zones[zone] = (appeared, count - 1)
        return zones


def one_of_each_zone(rows: NDArray[np.intp], zone_of: Ints) -> NDArray[np.intp]:
    """The first of each zone, then the second of each, and so on. Zones come in the order in which they appeared,
    the nodes of a zone in the order of `rows`."""
    zones = zone_of[rows]
    _, sizes = np.unique(zones, return_counts=True)
    by_zone = np.argsort(zones, kind="stable")
    turns = np.empty(len(rows), dtype=np.intp)
    turns[by_zone] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rows[np.lexsort((zones, turns))]


def last_moved_to(columns: NDArray[Element], row: int) -> NDArray[Element]:
    """Without the element in this row, whose place the last one takes. The rows are along the last axis."""
    moved = columns[..., :-1].copy()
    if row < moved.shape[-1]:
        moved[..., row] = columns[..., -1]
    return moved


def zone_key(node: Node) -> str:
    """Region and zone as one key. The beta labels win over the current ones (component-helpers/node/topology,
    v1.36)."""
    labels = node.labels
    region, zone = (
        labels.get(f"failure-domain.beta.kubernetes.io/{part}", labels.get(f"topology.kubernetes.io/{part}", ""))
        for part in ("region", "zone")
    )
    return f"{region}:\0:{zone}" if region or zone else ""
