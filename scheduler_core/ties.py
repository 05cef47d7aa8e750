"""Chooses one of several equally good nodes, as the scheduler does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.extension_points import Scores


def first_of_heap(totals: Scores) -> int:
    """Returns the node that the scheduler takes since 1.35 among several with the highest total: the root after Go's
    heap.Init over the list of nodes.

    A position keeps its node unless a child has a higher total; of two equally high children, the left one rises. So
    the root is the highest total that comes first when the tree is read from the top, each left branch before the right
    one. The path to a position is its number in binary, counted from 1, after the leading digit: 0 is left, 1 is right.
    """
    return first_of_places(np.flatnonzero(totals == totals.max()))


def first_of_places(places: NDArray[np.intp]) -> int:
    """Returns the choice of `first_of_heap`, for the positions of the highest totals."""
    numbers = places + 1
    _, digits = np.frexp(numbers)
    ways = numbers << (digits[-1] - digits)
    return int(numbers[ways.argmin()]) - 1  # of a node and its left branch, the node has the lower number
