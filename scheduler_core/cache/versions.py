"""The resource versions of cached and recently deleted objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Final

from scheduler_core.snapshot.remembered import Remembered

_UNKNOWN: Final = 0  # No API server uses this version.
_DELETIONS: Final = 4096


class Versions:
    """The resource version of each existing object, and of recently deleted objects, by kind and key."""

    def __init__(self) -> None:
        self._held: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._deleted: Remembered[tuple[str, str], int] = Remembered(_DELETIONS)

    def is_certainly_older(self, kind: str, key: str, version: int | None) -> bool:
        """Whether this version is older than the version of the cached object, or than the version at which the object
        was deleted. False if the two versions cannot be compared."""
        if version is None:
            return False
        held = self._held[kind].get(key)
        if held is None:
            return version < self._deleted.get((kind, key), _UNKNOWN)
        return version < held

    def keep(self, kind: str, key: str, version: int | None) -> None:
        """Records that the object exists with this resource version."""
        self._held[kind][key] = version or _UNKNOWN
        self._deleted.pop((kind, key), None)

    def drop(self, kind: str, key: str, version: int | None) -> None:
        """Records the deletion of the object. `version` is the resource version of the deletion."""
        held = self._held[kind].pop(key, _UNKNOWN)
        newest = max(held, version or _UNKNOWN)
        if newest:
            self._deleted[kind, key] = newest

    def forget_deletions(self, kind: str) -> None:
        """Forgets which objects of this kind were deleted. Called before a list is applied, because every object in the
        list exists again."""
        for each in [each for each in self._deleted if each[0] == kind]:
            del self._deleted[each]

    def keys(self, kind: str) -> Collection[str]:
        """Returns the keys of all existing objects of the kind, including objects that cannot be read."""
        return self._held[kind].keys()
