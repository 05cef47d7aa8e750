"""The cached objects other than nodes and pods, by kind and key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any


class OtherObjects:
    """`changed`: every kind with an object that changed since the last snapshot."""

    def __init__(self) -> None:
        self._by_kind: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        self.changed: set[str] = set()

    def put(self, kind: str, key: str, value: Any) -> bool:
        """Whether the object changed."""
        held = self._by_kind[kind]
        if key in held and held[key] == value:
            return False
        held[key] = value
        self.changed.add(kind)
        return True

    def drop(self, kind: str, key: str) -> bool:
        """Whether the object existed."""
        was_there = self._by_kind[kind].pop(key, None) is not None
        if was_there:
            self.changed.add(kind)
        return was_there

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
