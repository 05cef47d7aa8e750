"""Chooses one of several equally good nodes, as the scheduler does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.extension_points import Scores


def first_of_heap(totals: Scores) -> int:
    """Returns the position of the node that the scheduler chooses since 1.35 if several nodes have the highest total
    score: the root after Go's heap.Init over the list of nodes.

    While the heap is built, a node stays where it is unless a child has a higher total. If two children have equally
    high totals, the left child moves up. So the root is the first node with the highest total in a pre-order walk of
    the tree (a node, its left subtree, its right subtree). The binary digits of position + 1, without the leading 1,
    are the path from the root to this position: 0 is left, 1 is right.
    """
    return first_of_places(np.flatnonzero(totals == totals.max()))


def first_of_places(places: NDArray[np.intp]) -> int:
    """Returns the position of the node that the scheduler chooses among the nodes at these positions, which all have
    the highest total score; see `first_of_heap`. The positions are in ascending order."""
    # In binary, the mantissa of position + 1 is 0.1 followed by the digits of the path. So a position that the walk
    # reaches earlier has a smaller mantissa. Two mantissas are equal if one path is the other path with zeros added at
    # its end.
    paths, _ = np.frexp(places + 1)
    # Of equal mantissas, `argmin` returns the first, which belongs to the smallest position. The walk reaches this
    # position before the others.
    return int(places[paths.argmin()])
