"""Sorts as Go's sort.Slice does, including the order of equal items.

Pods of one ReplicaSet often start in the same second; then the order of equal items decides which pods preemption
spares. Go's sort is a pattern-defeating quicksort (Peters 2021, arXiv:2106.05123): not stable, but deterministic, as
even its shuffles depend only on the number of items. The parameters are those of Go's package sort since 1.19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

_INSERTION_AT_MOST: Final = 12  # shorter ranges are sorted by insertion, which is stable
_NINTHER_FROM: Final = 50  # from this length on the pivot is a median of medians
_SHIFT_FROM: Final = 50  # shorter ranges are not worth repairing
_REPAIRS: Final = 5  # pairs out of order that are repaired before a range counts as unsorted
_ALL_SWAPPED: Final = 12  # the most swaps that choosing a pivot can make: the range is probably descending
_WORD: Final = 2**64 - 1


def go_sorted(items: Iterable[Item], less: Callable[[Item, Item], bool]) -> list[Item]:
    """`less` need not be a consistent order: the same pairs are compared in the same sequence as in Go."""
    run = list(items)
    _Sort(run, less).sort(0, len(run), len(run).bit_length())
    return run


class _Sort(Generic[Item]):
    """A range begins at `start` and ends before `end`."""

    def __init__(self, run: list[Item], less: Callable[[Item, Item], bool]) -> None:
        self._run = run
        self._is_less = less

    def _less(self, one: int, other: int) -> bool:
        return self._is_less(self._run[one], self._run[other])

    def _swap(self, one: int, other: int) -> None:
        self._run[one], self._run[other] = self._run[other], self._run[one]

    def sort(self, start: int, end: int, patience: int) -> None:
        """After `patience` unbalanced partitions, heap sort is used instead."""
        balanced = partitioned = True
        while end - start > _INSERTION_AT_MOST:
            if patience == 0:
                self._heap_sort(start, end)
                return
            if not balanced:
                self._break_pattern(start, end)
                patience -= 1
            pivot, swaps = self._choose_pivot(start, end)
            if swaps == _ALL_SWAPPED:
                self._run[start:end] = self._run[start:end][::-1]
                pivot, swaps = end - 1 - (pivot - start), 0
            if balanced and partitioned and swaps == 0 and self._repair(start, end):
                return
            if start > 0 and not self._less(start - 1, pivot):
                start = self._partition_equal(start, end, pivot)
                continue
            middle, partitioned = self._partition(start, end, pivot)
            left, right, enough = middle - start, end - middle, (end - start) // 8
            balanced = min(left, right) >= enough
            if left < right:
                self.sort(start, middle, patience)
                start = middle + 1
            else:
                self.sort(middle + 1, end, patience)
                end = middle
        self._insertion_sort(start, end)

    def _insertion_sort(self, start: int, end: int) -> None:
        """All of the sort where few pods are compared, as on most nodes. `_less` and `_swap` would nearly double its
        time."""
        run, less = self._run, self._is_less
        for first in range(start + 1, end):
            place = first
            while place > start and less(run[place], run[place - 1]):
                run[place], run[place - 1] = run[place - 1], run[place]
                place -= 1

    # ---- pivots ----

    def _choose_pivot(self, start: int, end: int) -> tuple[int, int]:
        """The position of an item that is probably near the median, and how many of the compared pairs were out of
        order."""
        quarter = (end - start) // 4
        places = [start + quarter, start + 2 * quarter, start + 3 * quarter]
        swaps = 0
        if end - start >= _NINTHER_FROM:
            for index, place in enumerate(places):
                places[index], more = self._median(place - 1, place, place + 1)
                swaps += more
        middle, more = self._median(*places)
        return middle, swaps + more

    def _median(self, one: int, two: int, three: int) -> tuple[int, int]:
        swaps = 0
        if self._less(two, one):
            one, two, swaps = two, one, swaps + 1
        if self._less(three, two):
            two, three, swaps = three, two, swaps + 1
        if self._less(two, one):
            one, two, swaps = two, one, swaps + 1
        return two, swaps

    # ---- partitions ----

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Moves smaller items before the pivot, the others after it. The pivot's position, and whether each item was
        already on its side."""
        self._swap(start, pivot)
        low, high = self._close_in(start, start + 1, end - 1)
        already = low > high
        while low <= high:
            self._swap(low, high)
            low, high = self._close_in(start, low + 1, high - 1)
        self._swap(high, start)
        return high, already

    def _close_in(self, pivot: int, low: int, high: int) -> tuple[int, int]:
        while low <= high and self._less(low, pivot):
            low += 1
        while low <= high and not self._less(high, pivot):
            high -= 1
        return low, high

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Moves items equal to the pivot to the front: the position after them. No item may be smaller than the
        pivot."""
        self._swap(start, pivot)
        low, high = start + 1, end - 1
        while True:
            while low <= high and not self._less(start, low):
                low += 1
            while low <= high and self._less(start, high):
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low, high = low + 1, high - 1

    # ---- special runs ----

    def _repair(self, start: int, end: int) -> bool:
        """Repairs an almost sorted range. False if too many pairs are out of order."""
        place = start + 1
        for _ in range(_REPAIRS):
            while place < end and not self._less(place, place - 1):
                place += 1
            if place == end:
                return True
            if end - start < _SHIFT_FROM:
                return False
            self._swap(place, place - 1)
            if place - start >= 2:
                self._shift_left(place - 1)
            if end - place >= 2:
                self._shift_right(place + 1, end)
        return False

    def _shift_left(self, place: int) -> None:
        # Down to index 0 and not only to the start of the range: items before the range are never greater.
        while place >= 1 and self._less(place, place - 1):
            self._swap(place, place - 1)
            place -= 1

    def _shift_right(self, place: int, end: int) -> None:
        while place < end and self._less(place, place - 1):
            self._swap(place, place - 1)
            place += 1

    def _break_pattern(self, start: int, end: int) -> None:
        """Swaps three items near the middle with pseudo-random others, which depend only on the length of the range."""
        length = number = end - start
        middle = start + length // 4 * 2
        for place in (middle - 1, middle, middle + 1):
            number ^= number << 13 & _WORD
            number ^= number >> 7
            number ^= number << 17 & _WORD
            other = number & ((1 << length.bit_length()) - 1)
            self._swap(place, start + (other - length if other >= length else other))

    def _heap_sort(self, start: int, end: int) -> None:
        size = end - start
        for root in range((size - 1) // 2, -1, -1):
            self._sift_down(root, size, start)
        for last in range(size - 1, -1, -1):
            self._swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, size: int, start: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self._less(start + child, start + child + 1):
                child += 1
            if not self._less(start + root, start + child):
                return
            self._swap(start + root, start + child)
            root = child
