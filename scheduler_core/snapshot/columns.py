"""The nodes themselves in columns: one row per node, in the snapshot's order. What pods add to a node is in
pods/tallies.py.

Nothing here changes when pods come and go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.node import Node
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler_core.model.taints import Taint, Toleration, count_unpreferred, first_untolerated
from scheduler_core.snapshot.node_images import NodeImages
from scheduler_core.snapshot.node_labels import NodeLabels
from scheduler_core.snapshot.node_tree import NodeTree, last_moved_to, one_of_each_zone, zone_key
from scheduler_core.snapshot.remembered import Remembered

_ALWAYS: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
LARGEST: Final = 2**62  # beyond any real amount, and a sum of two still fits 64 bits


class Columns:
    """Everything about the nodes that a column can hold. Arrays are shared and not to be written to."""

    def __init__(
        self,
        nodes: tuple[Node, ...],
        labels: NodeLabels | None = None,
        images: NodeImages | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        self.nodes = nodes
        self.names = tuple(node.name for node in nodes) if names is None else names
        self.labels = labels or NodeLabels(nodes)
        self.images = images or NodeImages(nodes)
        self.all_rows = np.arange(len(nodes), dtype=np.intp)
        self._tolerated: Remembered[tuple[Toleration, ...], NDArray[np.bool_]] = Remembered()
        self._unpreferred: Remembered[tuple[Toleration, ...], NDArray[np.int64]] = Remembered()

    def with_node(self, row: int, node: Node) -> Self:
        """The columns with one node changed to another of its name; what the change does not touch is taken over."""
        old = self.nodes[row]
        nodes = (*self.nodes[:row], node, *self.nodes[row + 1 :])
        same_labels = old.labels == node.labels
        images = self.images if old.images == node.images else self.images.changed(nodes, (row,))
        new = type(self)(nodes, self.labels if same_labels else None, images, self.names)
        new._take_over(self, "row_of")
        if old.created_at == node.created_at and zone_key(old) == zone_key(node):
            new._take_over(self, "tree", "tree_order", "tree_orders", "_shuffled")
        else:
            new.__dict__["tree"] = self.tree.with_replaced(row, old, node)
        if old.allocatable == node.allocatable:
            new._take_over(self, "resources", "allocatable", "allowed_pods")
        if "taint_sets" in self.__dict__:
            new.__dict__["taint_sets"] = _with_taints(self.taint_sets, row, node.taints)
        if "unschedulable" in self.__dict__:
            new.__dict__["unschedulable"] = self.unschedulable.copy()
            new.unschedulable[row] = node.unschedulable
        return new

    def with_added(self, nodes: Sequence[Node]) -> Self:
        """The columns with these nodes after the others, in rows and in the tree; their names are new."""
        everything = (*self.nodes, *nodes)
        first = len(self.nodes)
        images = self.images.changed(everything, range(first, len(everything)))
        names = (*self.names, *(node.name for node in nodes))
        new = type(self)(everything, self.labels.with_added(everything), images, names)
        new.__dict__["tree"] = self.tree.with_added(nodes)
        new.__dict__["row_of"] = {**self.row_of, **{node.name: row for row, node in enumerate(nodes, first)}}
        if "resources" in self.__dict__ and all(self._has_lines_for(node) for node in nodes):
            new._take_over(self, "resources")
            new._append("allocatable", self, _amounts(nodes, self.resources))
            new._append("allowed_pods", self, _int_column(nodes, PODS))
        new._append("unschedulable", self, np.array([node.unschedulable for node in nodes], dtype=bool))
        return new

    def without_row(self, row: int) -> Self:
        """The columns without one node. The last node takes its row, so that no other one moves; in the tree all keep
        their places."""
        gone, last = self.nodes[row], self.nodes[-1]
        moved = row < len(self.nodes) - 1
        nodes = (*self.nodes[:row], last, *self.nodes[row + 1 : -1]) if moved else self.nodes[:-1]
        names = (*self.names[:row], last.name, *self.names[row + 1 : -1]) if moved else self.names[:-1]
        new = type(self)(nodes, None, self.images.changed(nodes, {row, len(self.nodes) - 1}), names)
        new.__dict__["tree"] = self.tree.without(row, gone)
        row_of = {**self.row_of, last.name: row}
        del row_of[gone.name]
        new.__dict__["row_of"] = row_of
        columns = ["unschedulable"]
        if nodes and gone.allocatable.keys() <= nodes[0].allocatable.keys():  # every resource is still there
            new._take_over(self, "resources")
            columns += ["allocatable", "allowed_pods"]
        for each in columns:
            if each in self.__dict__:
                new.__dict__[each] = last_moved_to(self.__dict__[each], row)
        return new

    def _has_lines_for(self, node: Node) -> bool:
        return all(name in self.resources or name == PODS for name in node.allocatable)

    def _append(self, name: str, other: Self, more: NDArray[Any]) -> None:
        if name in other.__dict__:
            self.__dict__[name] = np.concatenate([other.__dict__[name], more], axis=-1)

    def _take_over(self, other: Self, *names: str) -> None:
        self.__dict__.update({name: other.__dict__[name] for name in names if name in other.__dict__})

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def tree(self) -> NodeTree:
        """The scheduler's tree of nodes: as one that got them in the order of rows has it, unless nodes came and went
        since."""
        return NodeTree.of(self.nodes)

    @cached_property
    def tree_order(self) -> NDArray[np.intp]:
        """All rows in the order in which the scheduler goes through its nodes: one of each zone in turn, zones
        and their nodes as they appeared.

        Only what the scheduler leaves to order depends on it: ties, and where a search that may stop early looks first.
        """
        return self.tree.order()

    @cached_property
    def tree_orders(self) -> tuple[NDArray[np.intp], ...]:
        """Every order that the scheduler's tree may have: as a scheduler that has just started reads them, and
        as one that saw each node come, where that is another.

        A scheduler reads its first list in the order of names (until 1.34, see `shuffled_order`); later nodes come
        last, also one that was removed and made again. Nothing in the API says when it started."""
        aged = sorted(range(len(self.nodes)), key=lambda row: self.nodes[row].created_at)
        by_age = self._one_of_each_zone(np.array(aged, dtype=np.intp))
        return (self.tree_order,) if np.array_equal(by_age, self.tree_order) else (self.tree_order, by_age)

    def shuffled_order(self, number: int) -> NDArray[np.intp]:
        """An order drawn with this number: that of a scheduler since 1.35 which started when the nodes were there.

        It gets its first nodes as a stream, collects them in a map, and takes them out in the map's order, which is
        random (watchList in client-go's tools/cache/reflector.go, gate WatchListClient)."""
        known = self._shuffled.get(number)
        if known is None:
            drawn = np.random.RandomState(number).permutation(len(self.nodes))
            known = self._shuffled[number] = self._one_of_each_zone(drawn)
        return known

    @cached_property
    def _shuffled(self) -> Remembered[int, NDArray[np.intp]]:
        return Remembered()

    def _one_of_each_zone(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """These rows, zone by zone in turn, zones and their nodes as they stand there."""
        zones = self.tree.zone_of[rows]
        _, firsts, numbers = np.unique(zones, return_index=True, return_inverse=True)
        return rows[one_of_each_zone(np.arange(len(rows)), firsts[numbers])]

    def in_tree_order(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The same rows, sorted by `tree_order`."""
        wanted = np.zeros(len(self.nodes), dtype=bool)
        wanted[rows] = True
        return self.tree_order[wanted[self.tree_order]]

    @cached_property
    def resources(self) -> Mapping[str, int]:
        """Resource name → line of `allocatable`; cpu, memory and ephemeral-storage are always 0, 1 and 2."""
        names = dict.fromkeys(_ALWAYS)
        for node in self.nodes:
            names.update(dict.fromkeys(node.allocatable))
        names.pop(PODS, None)
        return {name: line for line, name in enumerate(names)}

    @cached_property
    def allocatable(self) -> NDArray[np.int64]:
        """Allocatable amounts: a line per resource, a column per node."""
        return _amounts(self.nodes, self.resources)

    @cached_property
    def allowed_pods(self) -> NDArray[np.int64]:
        return _int_column(self.nodes, PODS)

    @cached_property
    def unschedulable(self) -> NDArray[np.bool_]:
        return np.fromiter((node.unschedulable for node in self.nodes), dtype=bool, count=len(self.nodes))

    @cached_property
    def taint_sets(self) -> tuple[tuple[tuple[Taint, ...], ...], NDArray[np.intp]]:
        """The distinct lists of taints, and for each node the place of its own among them."""
        known: dict[tuple[Taint, ...], int] = {}
        codes = np.fromiter(
            (known.setdefault(node.taints, len(known)) for node in self.nodes), dtype=np.intp, count=len(self.nodes)
        )
        return tuple(known), codes

    def tolerated(self, tolerations: tuple[Toleration, ...]) -> NDArray[np.bool_]:
        """Nodes without a NoSchedule or NoExecute taint that these tolerations leave uncovered."""
        known = self._tolerated.get(tolerations)
        if known is None:
            sets, codes = self.taint_sets
            known = self._tolerated[tolerations] = np.array(
                [first_untolerated(taints, tolerations) is None for taints in sets], dtype=bool
            )[codes]
        return known

    def unpreferred_taints(self, tolerations: tuple[Toleration, ...]) -> NDArray[np.int64]:
        """Per node, how many PreferNoSchedule taints these tolerations leave uncovered."""
        known = self._unpreferred.get(tolerations)
        if known is None:
            sets, codes = self.taint_sets
            known = self._unpreferred[tolerations] = np.array(
                [count_unpreferred(taints, tolerations) for taints in sets], dtype=np.int64
            )[codes]
        return known

    def declaring(self, features: frozenset[str]) -> NDArray[np.bool_]:
        """Nodes that declare all of these features."""
        return np.fromiter(
            (features <= node.declared_features for node in self.nodes), dtype=bool, count=len(self.nodes)
        )


def _amounts(nodes: Sequence[Node], lines: Mapping[str, int]) -> NDArray[np.int64]:
    table = np.zeros((len(lines), len(nodes)), dtype=np.int64)
    for row, node in enumerate(nodes):
        for name, amount in node.allocatable.items():
            if name != PODS:
                table[lines[name], row] = min(amount, LARGEST)
    return table


def _int_column(nodes: Sequence[Node], name: str) -> NDArray[np.int64]:
    return np.fromiter(
        (min(node.allocatable.get(name, 0), LARGEST) for node in nodes), dtype=np.int64, count=len(nodes)
    )


TaintSets = tuple[tuple[tuple[Taint, ...], ...], NDArray[np.intp]]


def _with_taints(known: TaintSets, row: int, taints: tuple[Taint, ...]) -> TaintSets:
    sets, codes = known
    if taints not in sets:
        sets = (*sets, taints)
    codes = codes.copy()
    codes[row] = sets.index(taints)
    return sets, codes
