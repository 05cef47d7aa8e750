"""The data of the nodes in columns: one element per row, in the snapshot's order.

Nothing here depends on pods. The columns that pods change are in pods/tallies.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.node import Node
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler_core.model.taints import Taint, Toleration, first_untolerated
from scheduler_core.snapshot.node_labels import NodeLabels
from scheduler_core.snapshot.nodes.node_images import NodeImages
from scheduler_core.snapshot.nodes.node_tree import NodeTree, one_of_each_zone
from scheduler_core.snapshot.remembered import Remembered

_ALWAYS: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_OF_ALLOCATABLE: Final = (
    "resources",
    "resource_names",
    "allocatable",
    "allowed_pods",
    "all_have_cpu_and_memory",
    "cpu_and_memory_floats",
    "has_exact_floats",
    "by_usage",
)
_BY_USAGE: Final = 512
_ANSWERS: Final = 128  # each has a few columns; most pods have the same tolerations
_PARTS: Final = ("name", "labels", "images", "allocatable", "created_at")
MOST_COUNTED: Final = 2**62  # beyond any real amount, and a sum of two still fits 64 bits

Element = TypeVar("Element")
Number = TypeVar("Number", bound=np.generic)
TreeChange = Callable[[NodeTree], NodeTree]


class Columns:
    """The data of all nodes as columns. Nothing may change the arrays: several snapshots share them."""

    def __init__(
        self,
        nodes: tuple[Node, ...],
        labels: NodeLabels | None = None,
        images: NodeImages | None = None,
    ) -> None:
        self.nodes = nodes
        self.identity = object()  # keeping it keeps no nodes in memory
        self.labels = labels or NodeLabels(nodes)
        self.images = images or NodeImages(nodes)
        self.answers: Remembered[Hashable, Any] = Remembered(_ANSWERS)  # of plugins that read only the nodes
        self.kept_scores: Remembered[Hashable, Any] = Remembered()  # by spec (framework/scoring/scorer.py)
        self._tolerated: Remembered[tuple[Toleration, ...], NDArray[np.bool_]] = Remembered()
        self._last_in_tree_order: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None
        self._last_places: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None

    def patched(
        self,
        length: int,
        rows: Mapping[int, Node],
        row_of: Mapping[str, int | None],
        of_tree: Sequence[TreeChange],
    ) -> Self:
        """Columns for `length` nodes after a change of nodes; unchanged ones are shared. `rows` maps each changed
        row to its new node, `row_of` an added or moved node to its new row and a removed one to None. `of_tree` has
        the changes of the scheduler's node tree."""
        nodes = _patched(self.nodes, length, rows)
        keeps = {each for each in _PARTS if length == len(self) and self._has_same(each, rows)}
        touched = {*rows, *range(length, len(self))}
        images = self.images if "images" in keeps else self.images.changed(nodes, touched)
        labels: NodeLabels | None = None
        if {"name", "labels"} <= keeps:
            labels = self.labels
        elif min(touched) >= len(self):
            labels = self.labels.with_added(nodes)
        new = type(self)(nodes, labels, images)
        new._take_over_names(self, rows, row_of, has_same="name" in keeps)
        new._take_over_tree(self, of_tree, has_same_ages={"name", "created_at"} <= keeps)
        if "allocatable" in keeps:
            new._take_over(self, *_OF_ALLOCATABLE)
        elif "resources" in self.__dict__ and self._has_same_resources(nodes, rows):
            new._take_over(self, "resources", "resource_names")
            new._patch(self, "allocatable", rows, lambda changed: _amounts(changed, self.resources))
            new._patch(self, "allowed_pods", rows, lambda changed: _int_column(changed, PODS))
        new._patch(self, "unschedulable", rows, lambda changed: np.array([node.unschedulable for node in changed]))
        if "taint_sets" in self.__dict__:
            new.__dict__["taint_sets"] = _with_taints(self.taint_sets, length, rows)
        return new

    def _has_same(self, attribute: str, rows: Mapping[int, Node]) -> bool:
        return all(getattr(self.nodes[row], attribute) == getattr(node, attribute) for row, node in rows.items())

    def _has_same_resources(self, nodes: Sequence[Node], rows: Mapping[int, Node]) -> bool:
        """Whether the resource names are the same before and after. Cheap, and may say False although they are."""
        if not nodes:
            return False
        new = {name for node in rows.values() for name in node.allocatable}
        left = [self.nodes[row] for row in (*rows, *range(len(nodes), len(self))) if row < len(self)]
        gone = {name for node in left for name in node.allocatable}
        return new <= {*self.resources, PODS} and gone <= {*nodes[0].allocatable, *_ALWAYS}

    def _take_over_names(
        self, other: Self, rows: Mapping[int, Node], row_of: Mapping[str, int | None], *, has_same: bool
    ) -> None:
        if has_same:
            self._take_over(other, "names", "row_of", "all_rows")
            return
        if "names" in other.__dict__:
            names = {row: node.name for row, node in rows.items()}
            self.__dict__["names"] = _patched(other.names, len(self), names)
        if "row_of" in other.__dict__:
            self.__dict__["row_of"] = known = dict(other.row_of)
            for name, row in row_of.items():
                if row is None:
                    known.pop(name, None)
                else:
                    known[name] = row

    def _take_over_tree(self, other: Self, changes: Sequence[TreeChange], *, has_same_ages: bool) -> None:
        if changes:
            tree = other.tree
            for change in changes:
                tree = change(tree)
            self.__dict__["tree"] = tree
        else:
            self._take_over(other, "tree", "tree_order", *(("tree_orders", "_shuffled") if has_same_ages else ()))

    def _patch(
        self, other: Self, name: str, rows: Mapping[int, Node], column_of: Callable[[Sequence[Node]], NDArray[Any]]
    ) -> None:
        if name in other.__dict__:
            self.__dict__[name] = column = resized(other.__dict__[name], len(self)).copy()
            if rows:
                column[..., list(rows)] = column_of(list(rows.values()))

    def _take_over(self, other: Self, *names: str) -> None:
        self.__dict__.update({name: other.__dict__[name] for name in names if name in other.__dict__})

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)

    @cached_property
    def all_rows(self) -> NDArray[np.intp]:
        rows = np.arange(len(self.nodes), dtype=np.intp)
        rows.flags.writeable = False
        return rows

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def tree(self) -> NodeTree:
        """The scheduler's tree of nodes, first built as if the scheduler had received them in the order of rows."""
        return NodeTree.of(self.nodes)

    @cached_property
    def tree_order(self) -> NDArray[np.intp]:
        """All rows as the scheduler searches them: the first node of each zone, then the second of each, and so on,
        zones and their nodes in the order in which the scheduler first saw them.

        Matters only among nodes with equal scores, and for a search that does not check every node.
        """
        return self.tree.order()

    @cached_property
    def tree_orders(self) -> tuple[NDArray[np.intp], ...]:
        """The orders that the scheduler's node tree may have, as far as they are known: that of a scheduler that has
        just started and, if it differs, that of one that was running when each node was added. The API does not show
        which.

        Up to 1.34, a starting scheduler reads the nodes by name; later ones read them in a random order, which is not
        in this tuple (see `shuffled_order`). A node that is added later, or created again, comes last in its zone.
        """
        aged = sorted(range(len(self.nodes)), key=lambda row: self.nodes[row].created_at)
        by_age = self._one_of_each_zone(np.array(aged, dtype=np.intp))
        return (self.tree_order,) if np.array_equal(by_age, self.tree_order) else (self.tree_order, by_age)

    def shuffled_order(self, number: int) -> NDArray[np.intp]:
        """One possible random order of the rows, as a scheduler since 1.35 has of the nodes that existed at its start;
        `number` is the seed.

        It receives its first nodes as a stream, collects them in a map and reads them in the map's random order
        (watchList in client-go's tools/cache/reflector.go, gate WatchListClient).
        """
        known = self._shuffled.get(number)
        if known is None:
            drawn = np.random.RandomState(number).permutation(len(self.nodes))
            known = self._shuffled[number] = self._one_of_each_zone(drawn)
        return known

    @cached_property
    def _shuffled(self) -> Remembered[int, NDArray[np.intp]]:
        return Remembered()

    def _one_of_each_zone(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The first of each zone, then the second of each, and so on; otherwise in the order of `rows`."""
        zones = self.tree.zone_of[rows]
        _, firsts, numbers = np.unique(zones, return_index=True, return_inverse=True)
        return rows[one_of_each_zone(np.arange(len(rows)), firsts[numbers])]

    def in_tree_order(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sorted as in `tree_order`. The caller must not change the array."""
        known = self._last_in_tree_order
        if known is not None and known[0] is rows:
            return known[1]
        wanted = np.zeros(len(self.nodes), dtype=bool)
        wanted[rows] = True
        ordered = self.tree_order.take(wanted.take(self.tree_order).nonzero()[0])
        if not rows.flags.writeable:  # a caller keeps these rows and will use them again
            self._last_in_tree_order = rows, ordered
        return ordered

    def places_in(self, found: NDArray[np.intp]) -> NDArray[np.intp]:
        """The position of each row among `found`, which has each row at most once; anything for the other rows."""
        last = self._last_in_tree_order
        is_kept = last is not None and last[1] is found
        if is_kept and self._last_places is not None and self._last_places[0] is found:
            return self._last_places[1]
        places = np.empty(len(self.nodes), dtype=np.intp)
        places[found] = np.arange(len(found), dtype=np.intp)
        if is_kept:
            self._last_places = found, places
        return places

    @cached_property
    def resources(self) -> Mapping[str, int]:
        """Each resource's index in `allocatable`. cpu, memory and ephemeral-storage are always 0, 1 and 2."""
        names = dict.fromkeys(_ALWAYS)
        for node in self.nodes:
            names.update(dict.fromkeys(node.allocatable))
        names.pop(PODS, None)
        return {name: line for line, name in enumerate(names)}

    @cached_property
    def resource_names(self) -> tuple[str, ...]:
        """The names in `resources`, in their order."""
        return tuple(self.resources)

    @cached_property
    def allocatable(self) -> NDArray[np.int64]:
        """`allocatable[index, row]` is the node's amount of the resource with this index in `resources`."""
        return _amounts(self.nodes, self.resources)

    @cached_property
    def all_have_cpu_and_memory(self) -> bool:
        """Whether every node has both cpu and memory."""
        return bool((self.allocatable[:2] > 0).all())

    @cached_property
    def cpu_and_memory_floats(self) -> NDArray[np.float64]:
        """cpu and memory of `allocatable` as floating-point numbers, for divisions. From 2⁵³ on, amounts may be
        rounded."""
        return self.allocatable[:2].astype(np.float64)

    @cached_property
    def has_exact_floats(self) -> bool:
        """Whether 100 times each amount of cpu and memory is exact as a floating-point number. Then truncated
        percentages equal those of integer division."""
        return bool((self.allocatable[:2] < 2**53 // 100).all())

    @cached_property
    def by_usage(self) -> Remembered[Hashable, list[Any]]:
        """A cache of columns that depend on allocatable resources and the pods' requests. Each is kept behind the
        version of the requests from which it was computed, which shows which nodes have changed."""
        return Remembered(_BY_USAGE)

    @cached_property
    def allowed_pods(self) -> NDArray[np.int64]:
        return _int_column(self.nodes, PODS)

    @cached_property
    def unschedulable(self) -> NDArray[np.bool_]:
        return np.fromiter((node.unschedulable for node in self.nodes), dtype=bool, count=len(self.nodes))

    @cached_property
    def taint_sets(self) -> tuple[tuple[tuple[Taint, ...], ...], NDArray[np.intp]]:
        """The distinct lists of taints, and which of them each node has."""
        known: dict[tuple[Taint, ...], int] = {}
        codes = np.fromiter(
            (known.setdefault(node.taints, len(known)) for node in self.nodes), dtype=np.intp, count=len(self.nodes)
        )
        return tuple(known), codes

    def tolerated(self, tolerations: tuple[Toleration, ...]) -> NDArray[np.bool_]:
        """For each node, whether these tolerations match all its NoSchedule and NoExecute taints."""
        known = self._tolerated.get(tolerations)
        if known is None:
            sets, codes = self.taint_sets
            known = self._tolerated[tolerations] = np.array(
                [first_untolerated(taints, tolerations) is None for taints in sets], dtype=bool
            )[codes]
        return known

    @cached_property
    def feature_sets(self) -> tuple[tuple[frozenset[str], ...], NDArray[np.intp]]:
        """The distinct sets of declared features, and which of them each node has."""
        known: dict[frozenset[str], int] = {}
        codes = [known.setdefault(node.declared_features, len(known)) for node in self.nodes]
        return tuple(known), np.array(codes, dtype=np.intp)

    @cached_property
    def cordons(self) -> tuple[tuple[bool, bool], NDArray[np.intp]]:
        """The two values of `unschedulable`, and which of them each node has: 0 for False, 1 for True."""
        return (False, True), self.unschedulable.astype(np.intp)

    @cached_property
    def by_value(self) -> Remembered[Hashable, Any]:
        """A cache for rules that read one field of the node, such as its taints (framework/by_value.py)."""
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


def _with_taints(known: TaintSets, length: int, rows: Mapping[int, Node]) -> TaintSets:
    sets = {taints: code for code, taints in enumerate(known[0])}
    codes = resized(known[1], length).copy()
    for row, node in rows.items():
        codes[row] = sets.setdefault(node.taints, len(sets))
    used = np.bincount(codes, minlength=len(sets)).nonzero()[0]  # a set that no node has any more is forgotten
    if len(used) < len(sets):
        codes = np.searchsorted(used, np.arange(len(sets))).take(codes)
    every = tuple(sets)
    return tuple(every[code] for code in used.tolist()), codes


def _patched(known: tuple[Element, ...], length: int, rows: Mapping[int, Element]) -> tuple[Element, ...]:
    column = [*known[:length], *(rows[row] for row in range(len(known), length))]
    for row, value in rows.items():
        column[row] = value
    return tuple(column)


def resized(per_node: NDArray[Number], nodes: int) -> NDArray[Number]:
    """The column extended with zeros, or shortened at its end. The nodes are along the last axis."""
    missing = nodes - per_node.shape[-1]
    if missing <= 0:
        return per_node[..., :nodes]
    return np.concatenate([per_node, np.zeros((*per_node.shape[:-1], missing), dtype=per_node.dtype)], axis=-1)
