"""Resource versions of cached and recently deleted objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Final

from scheduler_core.snapshot.remembered import Remembered

_UNKNOWN: Final = 0  # No API server uses this version.
_DELETIONS: Final = 4096


class Versions:
    """The version of each object, by kind and key."""

    def __init__(self) -> None:
        self._held: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._deleted: Remembered[tuple[str, str], int] = Remembered(_DELETIONS)

    def of(self, kind: str, key: str) -> int | None:
        """None if the object does not exist or its version cannot be compared."""
        return self._held[kind].get(key) or None

    def is_certainly_older(self, kind: str, key: str, version: int | None) -> bool:
        """Than the cached object, or than its deletion. False if the versions cannot be compared."""
        if version is None:
            return False
        held = self._held[kind].get(key)
        if held is None:
            return version < self._deleted.get((kind, key), _UNKNOWN)
        return version < held

    def keep(self, kind: str, key: str, version: int | None) -> None:
        """The object exists with this version."""
        self._held[kind][key] = version or _UNKNOWN
        self._deleted.pop((kind, key), None)

    def drop(self, kind: str, key: str, version: int | None) -> None:
        """The object was deleted at this version."""
        held = self._held[kind].pop(key, _UNKNOWN)
        newest = max(held, version or _UNKNOWN)
        if newest:
            self._deleted[kind, key] = newest

    def forget_deletions(self, kind: str) -> None:
        """For a list that is about to be applied: every object in it exists again."""
        for each in [each for each in self._deleted if each[0] == kind]:
            del self._deleted[each]

    def keys(self, kind: str) -> Collection[str]:
        """Of all existing objects of the kind, even those that cannot be read."""
        return self._held[kind].keys()
