"""How new the objects are that the cache holds, and those that it lately held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Final

from scheduler_core.snapshot.remembered import Remembered

_UNKNOWN: Final = 0  # no API server gives this version out
_DELETIONS: Final = 4096


class Versions:
    """By kind and key: the version of each object that there is, and of the last deletions."""

    def __init__(self) -> None:
        self._held: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._deleted: Remembered[tuple[str, str], int] = Remembered(_DELETIONS)

    def is_certainly_older(self, kind: str, key: str, version: int | None) -> bool:
        """Whether what is held, or was deleted, is newer. What cannot be compared is not certain."""
        if version is None:
            return False
        held = self._held[kind].get(key)
        if held is None:
            return version < self._deleted.get((kind, key), _UNKNOWN)
        return version < held

    def keep(self, kind: str, key: str, version: int | None) -> None:
        """There is this object, in this version."""
        self._held[kind][key] = version or _UNKNOWN
        self._deleted.pop((kind, key), None)

    def drop(self, kind: str, key: str, version: int | None) -> None:
        """There is no such object any more; `version` is that of its deletion."""
        held = self._held[kind].pop(key, _UNKNOWN)
        newest = max(held, version or _UNKNOWN)
        if newest:
            self._deleted[kind, key] = newest

    def forget_deletions(self, kind: str) -> None:
        """A list begins anew: its numbers count, whatever came before."""
        for each in [each for each in self._deleted if each[0] == kind]:
            del self._deleted[each]

    def keys(self, kind: str) -> Collection[str]:
        """Every object of the kind that there is, readable or not."""
        return self._held[kind].keys()
