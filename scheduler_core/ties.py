"""Chooses one of several equally good nodes, as the scheduler does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.extension_points import Scores


def first_of_heap(totals: Scores) -> int:
    """Returns the position that the scheduler takes since 1.35 among several with the highest total: the root after
    Go's heap.Init over the list of nodes.

    While the heap is built, a node stays where it is unless a child has a higher total. If two children have equally
    high totals, the left one rises. So the root is the first highest total on the way from the top, if left branches
    are read before right ones. The path to a position is its number in binary, counted from 1, without the leading
    digit: 0 is left, 1 is right.
    """
    return first_of_places(np.flatnonzero(totals == totals.max()))


def first_of_places(places: NDArray[np.intp]) -> int:
    """Returns the same result as `first_of_heap`. `places` are the positions of the highest totals."""
    numbers = places + 1
    _, digits = np.frexp(numbers)
    ways = numbers << (digits[-1] - digits)
    return int(numbers[ways.argmin()]) - 1  # of a node and its left branch, the node has the lower number
