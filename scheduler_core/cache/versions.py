"""Versions of the objects in the cache and of those recently deleted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Final

from scheduler_core.snapshot.remembered import Remembered

_UNKNOWN: Final = 0  # No API server uses this version.
_DELETIONS: Final = 4096


class Versions:
    """The version of each existing object and of the last deletions, by kind and key."""

    def __init__(self) -> None:
        self._held: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._deleted: Remembered[tuple[str, str], int] = Remembered(_DELETIONS)

    def is_certainly_older(self, kind: str, key: str, version: int | None) -> bool:
        """Whether the version is older than the one in the cache or, for a deleted object, the one at its deletion.
        False if they cannot be compared."""
        if version is None:
            return False
        held = self._held[kind].get(key)
        if held is None:
            return version < self._deleted.get((kind, key), _UNKNOWN)
        return version < held

    def keep(self, kind: str, key: str, version: int | None) -> None:
        """Records that the object exists in this version."""
        self._held[kind][key] = version or _UNKNOWN
        self._deleted.pop((kind, key), None)

    def drop(self, kind: str, key: str, version: int | None) -> None:
        """Records the deletion of the object; `version` is that of the deletion."""
        held = self._held[kind].pop(key, _UNKNOWN)
        newest = max(held, version or _UNKNOWN)
        if newest:
            self._deleted[kind, key] = newest

    def forget_deletions(self, kind: str) -> None:
        """Forgets deletions because a list starts: its versions count, regardless of earlier ones."""
        for each in [each for each in self._deleted if each[0] == kind]:
            del self._deleted[each]

    def keys(self, kind: str) -> Collection[str]:
        """All existing objects of the kind, readable or not."""
        return self._held[kind].keys()
