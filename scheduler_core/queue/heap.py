"""A heap whose items can be found, replaced and removed by key.

It moves items exactly as Go's container/heap does (pkg/scheduler/backend/heap, v1.36), because equal items must be
popped in the same order. Python's heapq moves them differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class KeyedHeap(Generic[Item]):
    """`less` says which of two items comes first."""

    __slots__ = ("_items", "_key", "_less", "_position")

    def __init__(self, key: Callable[[Item], str], less: Callable[[Item, Item], bool]) -> None:
        self._key = key
        self._less = less
        self._items: list[Item] = []
        self._position: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(tuple(self._items))

    def get(self, key: str) -> Item | None:
        position = self._position.get(key)
        return None if position is None else self._items[position]

    def peek(self) -> Item | None:
        return self._items[0] if self._items else None

    def put(self, item: Item) -> None:
        """Adds the item, or replaces the one with the same key."""
        position = self._position.get(self._key(item))
        if position is not None:
            self._items[position] = item
            self._restore(position)
            return
        self._items.append(item)
        self._position[self._key(item)] = len(self._items) - 1
        self._up(len(self._items) - 1)

    def pop(self) -> Item | None:
        if not self._items:
            return None
        last = len(self._items) - 1
        self._swap(0, last)
        self._down(0, last)
        return self._drop_last()

    def remove(self, key: str) -> Item | None:
        position = self._position.get(key)
        if position is None:
            return None
        last = len(self._items) - 1
        if position != last:
            self._swap(position, last)
            if not self._down(position, last):
                self._up(position)
        return self._drop_last()

    def _restore(self, position: int) -> None:
        if not self._down(position, len(self._items)):
            self._up(position)

    def _drop_last(self) -> Item:
        item = self._items.pop()
        del self._position[self._key(item)]
        return item

    def _swap(self, one: int, other: int) -> None:
        self._items[one], self._items[other] = self._items[other], self._items[one]
        self._position[self._key(self._items[one])] = one
        self._position[self._key(self._items[other])] = other

    def _up(self, child: int) -> None:
        while child > 0:
            parent = (child - 1) // 2
            if not self._less(self._items[child], self._items[parent]):
                return
            self._swap(parent, child)
            child = parent

    def _down(self, start: int, end: int) -> bool:
        parent = start
        while (child := 2 * parent + 1) < end:
            right = child + 1
            if right < end and self._less(self._items[right], self._items[child]):
                child = right
            if not self._less(self._items[child], self._items[parent]):
                break
            self._swap(parent, child)
            parent = child
        return parent > start
