"""The size of each image, and how many nodes have it.

Nodes may report different sizes under one name. The scheduler keeps the size that was reported first; this module that
of the first node in the snapshot's order (pkg/scheduler/backend/cache/cache.go, v1.36).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.node import Node
from scheduler_core.snapshot.remembered import Remembered
from scheduler_core.values import Value


class ImageState(Value):
    size_bytes: int
    node_count: int

    def spread_bytes(self, total_nodes: int) -> int:
        """The size times the share of nodes that have the image, by floating-point operations in the scheduler's
        order, so that rounding is the same."""
        return int(float(self.size_bytes) * (float(self.node_count) / float(total_nodes)))


_Place = tuple[int, list[int]]


class NodeImages:
    """The images of a fixed list of nodes, indexed by image name."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = nodes
        self._shares: Remembered[tuple[tuple[str, ...], int, int], NDArray[np.int8]] = Remembered(2048)

    @cached_property
    def _places(self) -> dict[str, tuple[int, list[int]]]:
        """By image name, its size and the rows of the nodes that have it. Nothing may change the lists: other
        snapshots' indexes share them."""
        places: dict[str, tuple[int, list[int]]] = {}
        for row, node in enumerate(self._nodes):
            for image in node.images:
                for name in image.names:
                    rows = places.setdefault(name, (image.size_bytes, []))[1]
                    if not rows or rows[-1] != row:
                        rows.append(row)
        return places

    def changed(self, nodes: tuple[Node, ...], rows: Iterable[int]) -> NodeImages:
        """The index for `nodes`, which differ from the indexed nodes only in the given rows."""
        new = NodeImages(nodes)
        if "_places" not in self.__dict__:
            return new
        places = dict(self._places)
        for row in rows:
            before, after = _sizes(self._nodes, row), _sizes(nodes, row)
            for name, size in after.items():
                if before.get(name) != size:
                    places[name] = _with_row(places.get(name, (0, [])), name, row, nodes)
            for name in before.keys() - after.keys():
                _take_row(places, name, row, nodes)
        new.__dict__["_places"] = places
        return new

    @cached_property
    def states(self) -> Mapping[str, ImageState]:
        return {name: ImageState(size, len(rows)) for name, (size, rows) in self._places.items()}

    def at_hand(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        """For each node, the sizes of those of these images that it has, each scaled as in
        `ImageState.spread_bytes`, added up."""
        found = np.zeros(len(self._nodes), dtype=np.int64)
        for name in names:
            if name in self._places:
                found[self._places[name][1]] += self.states[name].spread_bytes(len(self._nodes))
        return found

    def shares(self, names: tuple[str, ...], least: int, most: int) -> NDArray[np.int8]:
        """`share_between` of `at_hand`, for each node. The caller must not change the array."""
        key = (names, least, most)
        known = self._shares.get(key)
        if known is None:
            sizes = self.at_hand(names)
            known = self._shares[key] = np.full(len(sizes), share_between(0, least, most), dtype=np.int8)
            rows = sizes.nonzero()[0]  # few nodes have an image of one application
            known[rows] = share_between(sizes[rows], least, most)
        return known


def share_between(size: NDArray[np.int64] | int, least: int, most: int) -> NDArray[np.int64]:
    """0 for `least` or smaller, 100 for `most` or larger, in between linear and rounded down."""
    within = np.clip(size, least, max(most, least)) - least
    share: NDArray[np.int64] = 100 * within // (most - least)
    return share


def _sizes(nodes: tuple[Node, ...], row: int) -> dict[str, int]:
    """The image sizes that the node in this row reports, by image name; empty if the row does not exist."""
    sizes: dict[str, int] = {}
    for image in nodes[row].images if row < len(nodes) else ():
        for name in image.names:
            sizes.setdefault(name, image.size_bytes)
    return sizes


def _with_row(place: _Place, name: str, row: int, nodes: tuple[Node, ...]) -> _Place:
    size, rows = place
    at = bisect_left(rows, row)
    if at == len(rows) or rows[at] != row:
        rows = [*rows[:at], row, *rows[at:]]
    return (_sizes(nodes, row)[name] if rows[0] == row else size), rows


def _take_row(places: dict[str, _Place], name: str, row: int, nodes: tuple[Node, ...]) -> None:
    size, rows = places[name]
    left = [other for other in rows if other != row]
    if not left:
        del places[name]
    else:
        # The next row may no longer exist, because `nodes` may be shorter than before. A later call then removes it.
        was_first = rows[0] == row and left[0] < len(nodes)
        # The next row may have lost the image as well; it is handled later.
        places[name] = (_sizes(nodes, left[0]).get(name, size) if was_first else size), left
