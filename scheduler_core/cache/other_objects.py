"""The cached objects other than nodes and pods, by kind and key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_core.cache.changes import Change, Changes


class OtherObjects:
    """`changed`: every kind with an object that changed since the last snapshot.

    An assumed object is seen in snapshots instead of the one from the API server, until an event shows another one.
    """

    def __init__(self) -> None:
        self._by_kind: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        self._assumed: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        self.changed: set[str] = set()

    def get(self, kind: str, key: str) -> Any:
        """As the API server has it; None if there is no such object."""
        held = self._by_kind.get(kind)
        return None if held is None else held.get(key)

    def put(self, kind: str, key: str, value: Any) -> Changes:
        held = self._by_kind[kind]
        old = held.get(key)
        if old is not None and old == value:
            return ()
        held[key] = value
        self._assumed[kind].pop(key, None)
        self.changed.add(kind)
        return (Change(kind=kind, key=key, old=old, new=value),)

    def drop(self, kind: str, key: str) -> Changes:
        old = self._by_kind[kind].pop(key, None)
        if old is None:
            return ()
        self._assumed[kind].pop(key, None)
        self.changed.add(kind)
        return (Change(kind=kind, key=key, old=old, new=None),)

    def assume(self, kind: str, key: str, value: Any) -> None:
        """See `ClusterCache.assume_object`."""
        if key in self._by_kind[kind]:
            self._assumed[kind][key] = value
            self.changed.add(kind)

    def forget(self, kind: str, key: str, value: Any) -> None:
        """See `ClusterCache.forget_object`."""
        if self._assumed[kind].get(key) is value:
            del self._assumed[kind][key]
            self.changed.add(kind)

    def values(self) -> Mapping[str, list[Any]]:
        """By kind, sorted by key, as in an API server; assumed ones in their places. Sorted each time a kind is
        read."""
        return _Sorted(self._by_kind, self._assumed)

    def __len__(self) -> int:
        return sum(map(len, self._by_kind.values()))


class _Sorted(Mapping[str, list[Any]]):
    def __init__(self, by_kind: Mapping[str, dict[str, Any]], assumed: Mapping[str, dict[str, Any]]) -> None:
        self._by_kind, self._assumed = by_kind, assumed

    def __getitem__(self, kind: str) -> list[Any]:
        held = self._by_kind.get(kind, {})
        assumed = self._assumed.get(kind)
        seen = {**held, **assumed} if assumed else held
        return [seen[key] for key in sorted(seen)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_kind)

    def __len__(self) -> int:
        return len(self._by_kind)
