"""A cache with a limited number of entries, which drops the oldest when it is full.

A process that runs for weeks handles many pods that it never sees again; without a limit, each would leave an entry.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")

# Columns of 5,000 nodes: 5 to 40 KB each. Clusters have some hundred kinds of pods.
_ENTRIES: Final = 1024


class Remembered(dict[Key, Kept]):
    """A new entry replaces the oldest when the dict is full."""

    __slots__ = ("_entries",)

    def __init__(self, entries: int = _ENTRIES) -> None:
        super().__init__()
        self._entries = entries

    def __setitem__(self, key: Key, value: Kept) -> None:
        if len(self) >= self._entries and key not in self:
            del self[next(iter(self))]
        super().__setitem__(key, value)
