"""The nodes themselves in columns: one row per node, in the snapshot's order. What pods add to a node is in
pods/tallies.py.

Nothing here changes when pods come and go.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.node import Node
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler_core.model.taints import Taint, Toleration, first_untolerated
from scheduler_core.snapshot.node_images import NodeImages
from scheduler_core.snapshot.node_labels import NodeLabels
from scheduler_core.snapshot.node_tree import NodeTree, last_moved_to, one_of_each_zone
from scheduler_core.snapshot.remembered import Remembered

_ALWAYS: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_OF_ALLOCATABLE: Final = (
    "resources",
    "allocatable",
    "allowed_pods",
    "everywhere",
    "allocatable_floats",
    "is_exact_in_floats",
    "by_usage",
)
_BY_USAGE: Final = 512
MOST_COUNTED: Final = 2**62  # beyond any real amount, and a sum of two still fits 64 bits


class Columns:
    """All data about the nodes that fits into columns. Arrays are shared and must not be written to."""

    def __init__(
        self,
        nodes: tuple[Node, ...],
        labels: NodeLabels | None = None,
        images: NodeImages | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        self.nodes = nodes
        if names is not None:
            self.__dict__["names"] = names
        self.labels = labels or NodeLabels(nodes)
        self.images = images or NodeImages(nodes)
        self._tolerated: Remembered[tuple[Toleration, ...], NDArray[np.bool_]] = Remembered()

    def with_nodes(self, changed: Mapping[int, Node]) -> Self:
        """The columns with these nodes, by row, in place of those with the same names; unaffected columns are
        shared."""
        nodes = list(self.nodes)
        for row, node in changed.items():
            nodes[row] = node

        def keeps(attribute: str) -> bool:
            return all(getattr(self.nodes[row], attribute) == getattr(node, attribute) for row, node in changed.items())

        same_labels = keeps("labels")
        images = self.images if keeps("images") else self.images.changed(tuple(nodes), changed)
        new = type(self)(tuple(nodes), self.labels if same_labels else None, images)
        new._take_over(self, "names", "row_of", "all_rows")
        if same_labels and keeps("created_at"):
            new._take_over(self, "tree", "tree_order", "tree_orders", "_shuffled")
        elif same_labels:
            new._take_over(self, "tree", "tree_order")
        else:
            new.__dict__["tree"] = self.tree.with_replaced(
                {row: (self.nodes[row], node) for row, node in changed.items()}
            )
        if keeps("allocatable"):
            new._take_over(self, *_OF_ALLOCATABLE)
        new._take_over_states(self, changed)
        return new

    def with_added(self, nodes: Sequence[Node]) -> Self:
        """The columns with these nodes appended, in rows and in the tree; their names must be new."""
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
        """The columns without one node. The last node takes its row, so that no other node moves; the order in the tree
        stays."""
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

    def _take_over_states(self, other: Self, changed: Mapping[int, Node]) -> None:
        if "taint_sets" in other.__dict__:
            self.__dict__["taint_sets"] = _with_taints(other.taint_sets, changed)
        if "unschedulable" in other.__dict__:
            self.__dict__["unschedulable"] = unschedulable = other.unschedulable.copy()
            for row, node in changed.items():
                unschedulable[row] = node.unschedulable

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
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)

    @cached_property
    def all_rows(self) -> NDArray[np.intp]:
        return np.arange(len(self.nodes), dtype=np.intp)

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def tree(self) -> NodeTree:
        """The scheduler's tree of nodes: that of a scheduler that got the nodes in the order of rows, unless nodes were
        added or removed since."""
        return NodeTree.of(self.nodes)

    @cached_property
    def tree_order(self) -> NDArray[np.intp]:
        """All rows in the scheduler's order: one of each zone in turn, zones and their nodes in the order of
        appearance.

        It affects only what the scheduler leaves to the order: ties, and where a search that may stop early starts."""
        return self.tree.order()

    @cached_property
    def tree_orders(self) -> tuple[NDArray[np.intp], ...]:
        """Every order that the scheduler's tree may have: that of a scheduler that has just started, and that of one
        that saw each node being added, if they differ.

        A scheduler reads its first list in the order of names (until 1.34, see `shuffled_order`); later nodes come
        last, including one that was removed and created again. The API does not show when the scheduler started."""
        aged = sorted(range(len(self.nodes)), key=lambda row: self.nodes[row].created_at)
        by_age = self._one_of_each_zone(np.array(aged, dtype=np.intp))
        return (self.tree_order,) if np.array_equal(by_age, self.tree_order) else (self.tree_order, by_age)

    def shuffled_order(self, number: int) -> NDArray[np.intp]:
        """A random order, determined by this number: that of a scheduler since 1.35 which started when the nodes
        existed.

        It receives its first nodes as a stream, collects them in a map, and reads them in the map's order, which is
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
        """These rows, one of each zone in turn, zones and their nodes in the given order."""
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
        """Resource name → row of `allocatable`; cpu, memory and ephemeral-storage are always 0, 1 and 2."""
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
    def everywhere(self) -> tuple[bool, ...]:
        """By line of `allocatable`: whether every node has a positive amount of the resource."""
        return tuple(bool(least > 0) for least in self.allocatable.min(axis=1, initial=MOST_COUNTED))

    @cached_property
    def allocatable_floats(self) -> NDArray[np.float64]:
        """`allocatable` for divisions. Exact only for lines with `is_exact_in_floats`."""
        return self.allocatable.astype(np.float64)

    @cached_property
    def is_exact_in_floats(self) -> tuple[bool, ...]:
        """By line of `allocatable`: whether a hundred times each amount is an exact integer in floating point. Then a
        truncated quotient of two such numbers equals the integer division, because a remainder is too large to be lost
        in rounding."""
        return tuple(bool(most < 2**53 // 100) for most in self.allocatable.max(axis=1, initial=0))

    @cached_property
    def by_usage(self) -> Remembered[Hashable, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Columns that depend on the nodes' allocatable resources and on their pods' requests, each with the stamps
        (`Usage.stamps`) of those requests."""
        return Remembered(_BY_USAGE)

    @cached_property
    def allowed_pods(self) -> NDArray[np.int64]:
        return _int_column(self.nodes, PODS)

    @cached_property
    def unschedulable(self) -> NDArray[np.bool_]:
        return np.fromiter((node.unschedulable for node in self.nodes), dtype=bool, count=len(self.nodes))

    @cached_property
    def taint_sets(self) -> tuple[tuple[tuple[Taint, ...], ...], NDArray[np.intp]]:
        """The distinct lists of taints, and for each node the position of its own among them."""
        known: dict[tuple[Taint, ...], int] = {}
        codes = np.fromiter(
            (known.setdefault(node.taints, len(known)) for node in self.nodes), dtype=np.intp, count=len(self.nodes)
        )
        return tuple(known), codes

    def tolerated(self, tolerations: tuple[Toleration, ...]) -> NDArray[np.bool_]:
        """Nodes without a NoSchedule or NoExecute taint that these tolerations do not cover."""
        known = self._tolerated.get(tolerations)
        if known is None:
            sets, codes = self.taint_sets
            known = self._tolerated[tolerations] = np.array(
                [first_untolerated(taints, tolerations) is None for taints in sets], dtype=bool
            )[codes]
        return known

    @cached_property
    def feature_sets(self) -> tuple[tuple[frozenset[str], ...], NDArray[np.intp]]:
        """The distinct sets of declared features, and for each node the place of its own among them."""
        known: dict[frozenset[str], int] = {}
        codes = [known.setdefault(node.declared_features, len(known)) for node in self.nodes]
        return tuple(known), np.array(codes, dtype=np.intp)

    @cached_property
    def cordons(self) -> tuple[tuple[bool, bool], NDArray[np.intp]]:
        """`unschedulable` in the same form."""
        return (False, True), self.unschedulable.astype(np.intp)

    @cached_property
    def by_value(self) -> Remembered[Hashable, Any]:
        """What rules answered about the values above, per node (framework/by_value.py)."""
        return Remembered()


def _amounts(nodes: Sequence[Node], lines: Mapping[str, int]) -> NDArray[np.int64]:
    table = np.zeros((len(lines), len(nodes)), dtype=np.int64)
    for row, node in enumerate(nodes):
        for name, amount in node.allocatable.items():
            if name != PODS:
                table[lines[name], row] = min(amount, MOST_COUNTED)
    return table


def _int_column(nodes: Sequence[Node], name: str) -> NDArray[np.int64]:
    return np.fromiter(
        (min(node.allocatable.get(name, 0), MOST_COUNTED) for node in nodes), dtype=np.int64, count=len(nodes)
    )


TaintSets = tuple[tuple[tuple[Taint, ...], ...], NDArray[np.intp]]


def _with_taints(known: TaintSets, changed: Mapping[int, Node]) -> TaintSets:
    sets, codes = list(known[0]), known[1].copy()
    for row, node in changed.items():
        if node.taints not in sets:
            sets.append(node.taints)
        codes[row] = sets.index(node.taints)
    return tuple(sets), codes
