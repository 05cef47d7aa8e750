"""Which of several equally good nodes the scheduler takes."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from scheduler_core.framework.extension_points import Scores


def first_of_heap(totals: Scores) -> int:
    """Which of several highest totals the scheduler takes since 1.35: the root after Go's heap.Init over the
    list of nodes.

    A place keeps its node unless a child is higher; of two equally high children the left one rises.
    """
    maxima = np.flatnonzero(totals == totals.max()).tolist()
    place = 0
    while not _holds(maxima, place, place):
        left = 2 * place + 1
        place = left if _below(maxima, left, len(totals)) else left + 1
    return place


def _holds(maxima: list[int], first: int, last: int) -> bool:
    found = bisect_left(maxima, first)
    return found < len(maxima) and maxima[found] <= last


def _below(maxima: list[int], place: int, size: int) -> bool:
    """Whether the heap's subtree at `place` has a maximum: its levels are runs of neighbouring places."""
    first, last = place, place
    while first < size:
        if _holds(maxima, first, last):
            return True
        first, last = 2 * first + 1, 2 * last + 2
    return False
