"""A cache with a limited number of entries. When the cache is full, it drops the oldest entry.

A process that runs for weeks handles many pods that it never sees again. Without a limit, the cache would keep an entry
for each of them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")

# Columns of 5,000 nodes: 5 to 40 KB each. Clusters have some hundred kinds of pods.
_ENTRIES: Final = 1024


class Remembered(dict[Key, Kept]):
    """A dict with a limited size. When the dict is full, a new entry replaces the oldest entry."""

    __slots__ = ("_entries",)

    def __init__(self, entries: int = _ENTRIES) -> None:
        super().__init__()
        self._entries = entries

    def __setitem__(self, key: Key, value: Kept) -> None:
        if len(self) >= self._entries and key not in self:
            del self[next(iter(self))]
        super().__setitem__(key, value)
