"""Which of several equally good nodes the scheduler chooses."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.extension_points import Scores


def first_of_heap(totals: Scores) -> int:
    """The position that the scheduler chooses since 1.35: the root after Go's heap.Init over the list of nodes.

    While the heap is built, a node stays where it is unless a child has a higher total; of two equal children, the left
    moves up. So the root is the first node with the highest total in a pre-order walk of the tree (a node, its left
    subtree, its right subtree). The binary digits of position + 1, without the leading 1, are the path from the root: 0
    is left, 1 is right.
    """
    return first_of_places(np.flatnonzero(totals == totals.max()))


def first_of_places(places: NDArray[np.intp]) -> int:
    """`first_of_heap` among these different positions, which all have the highest total."""
    # In binary, the mantissa of position + 1 is 0.1 followed by the digits of the path, so the walk reaches smaller
    # mantissas earlier. Two mantissas are equal if one path is the other with zeros added at its end.
    # Of equal mantissas, the walk reaches the smallest position first.
    if len(places) <= _FEW:
        first: int = min(places.tolist(), key=_path)
        return first
    paths, _ = np.frexp(places + 1)
    return int(np.minimum.reduce(places[paths == np.minimum.reduce(paths)]))


def _path(place: int) -> tuple[float, int]:
    return math.frexp(place + 1)[0], place


_FEW: Final = 16
"""Up to so many positions an array costs more than a list."""
