"""Which nodes have which images, how large an image is, and how widely it has spread.

The scheduler knows one size per image name: that of the node which reported the name first, here the first in
the snapshot's order (pkg/scheduler/backend/cache/cache.go, v1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.node import Node
from scheduler_core.values import Value


class ImageState(Value):
    """One image name: its size, and the number of nodes that have it."""

    size_bytes: int
    node_count: int

    def spread_bytes(self, total_nodes: int) -> int:
        """The size, scaled down by the share of nodes that have the image; floating point in exactly this order."""
        return int(float(self.size_bytes) * (float(self.node_count) / float(total_nodes)))


class NodeImages:
    """The image index of a fixed list of nodes."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = nodes
        self._at_hand: dict[tuple[str, ...], NDArray[np.int64]] = {}
        self._shares: dict[tuple[tuple[str, ...], int, int], NDArray[np.int64]] = {}

    @cached_property
    def _places(self) -> Mapping[str, tuple[int, list[int]]]:
        places: dict[str, tuple[int, list[int]]] = {}
        for row, node in enumerate(self._nodes):
            for image in node.images:
                for name in image.names:
                    rows = places.setdefault(name, (image.size_bytes, []))[1]
                    if not rows or rows[-1] != row:
                        rows.append(row)
        return places

    @cached_property
    def states(self) -> Mapping[str, ImageState]:
        """Every image name that any node reports."""
        return {name: ImageState(size, len(rows)) for name, (size, rows) in self._places.items()}

    def at_hand(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        """Per node, the bytes of these images that it has, each counted by how widely it has spread. Not to be
        written to."""
        known = self._at_hand.get(names)
        if known is None:
            known = self._at_hand[names] = np.zeros(len(self._nodes), dtype=np.int64)
            for name in names:
                if name in self._places:
                    known[self._places[name][1]] += self.states[name].spread_bytes(len(self._nodes))
        return known

    def shares(self, names: tuple[str, ...], least: int, most: int) -> NDArray[np.int64]:
        """Per node, how far the bytes at hand have come from `least` to `most`, in hundredths rounded down. Not to be
        written to."""
        key = (names, least, most)
        known = self._shares.get(key)
        if known is None:
            within = np.clip(self.at_hand(names), least, max(most, least)) - least
            known = self._shares[key] = 100 * within // (most - least)
        return known
