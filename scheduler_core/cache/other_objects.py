"""The cached objects other than nodes and pods, by kind and key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_core.cache.changes import Change, Changes


class OtherObjects:
    """`changed`: every kind with an object that changed since the last snapshot."""

    def __init__(self) -> None:
        self._by_kind: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        self.changed: set[str] = set()

    def get(self, kind: str, key: str) -> Any:
        """None if there is no such object."""
        held = self._by_kind.get(kind)
        return None if held is None else held.get(key)

    def put(self, kind: str, key: str, value: Any) -> Changes:
        held = self._by_kind[kind]
        old = held.get(key)
        if old is not None and old == value:
            return ()
        held[key] = value
        self.changed.add(kind)
        return (Change(kind=kind, key=key, old=old, new=value),)

    def drop(self, kind: str, key: str) -> Changes:
        old = self._by_kind[kind].pop(key, None)
        if old is None:
            return ()
        self.changed.add(kind)
        return (Change(kind=kind, key=key, old=old, new=None),)

    def values(self) -> Mapping[str, list[Any]]:
        """By kind, sorted by key, as in an API server. Sorted each time a kind is read."""
        return _Sorted(self._by_kind)

    def __len__(self) -> int:
        return sum(map(len, self._by_kind.values()))


class _Sorted(Mapping[str, list[Any]]):
    def __init__(self, by_kind: Mapping[str, dict[str, Any]]) -> None:
        self._by_kind = by_kind

    def __getitem__(self, kind: str) -> list[Any]:
        held = self._by_kind.get(kind, {})
        return [held[key] for key in sorted(held)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_kind)

    def __len__(self) -> int:
        return len(self._by_kind)
