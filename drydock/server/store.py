"""All objects of the embedded cluster, with versions and history. Rules of single kinds are elsewhere.

One counter numbers the changes of all kinds, like etcd's revision. A change stores a new mapping and never modifies an
old one, so history, watches and the checker may keep references.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

Content = Mapping[str, Any]
Storage = tuple[str, str]
Key = tuple[str, str]  # namespace ("" for the cluster's own), name

_encoder = msgspec.json.Encoder()


class Stored:
    """One version of one object. Its JSON is encoded at most once, so that large lists are fast.

    `as_item` is the JSON of an item of a list, without apiVersion and kind, as in the real server; `whole` has both.
    """

    __slots__ = ("_encoded", "content", "key", "version")

    def __init__(self, key: Key, version: int, content: Content) -> None:
        self.key = key
        self.version = version
        self.content = content
        self._encoded: bytes | None = None

    @property
    def as_item(self) -> bytes:
        if self._encoded is None:
            self._encoded = _encoder.encode({k: v for k, v in self.content.items() if k not in ("apiVersion", "kind")})
        return self._encoded

    @property
    def whole(self) -> bytes:
        return b'{"kind":"%b","apiVersion":"%b",%b' % (
            self.content["kind"].encode(),
            self.content["apiVersion"].encode(),
            self.as_item[1:],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChange:
    """One write: the object before and after, the actor, the time in seconds of the store's clock."""

    version: int
    storage: Storage
    key: Key
    before: Stored | None
    after: Stored | None
    actor: str
    verb: str
    at: float

    @property
    def kind(self) -> Literal["ADDED", "MODIFIED", "DELETED"]:
        if self.before is None:
            return "ADDED"
        return "DELETED" if self.after is None else "MODIFIED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """All objects at one version."""

    version: int
    objects: Mapping[Storage, Mapping[Key, Stored]]


class HistoryGone(Exception):
    """The requested version is older than the history: the caller must list again."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the oldest resource version that the server keeps is {oldest}")
        self.oldest = oldest


class Store:
    """The objects by kind and key, with enough history of each kind for watches to resume."""

    def __init__(
        self, *, clock: Callable[[], float], history_length: int = 20_000, journal_length: int | None = None
    ) -> None:
        self.version = 1
        self.clock = clock
        # The whole history, for the checker; a long-lived cluster bounds it.
        self.journal: deque[ObjectChange] = deque(maxlen=journal_length)
        self._history_length = history_length
        self._objects: dict[Storage, dict[Key, Stored]] = defaultdict(dict)
        self._history: dict[Storage, list[ObjectChange]] = defaultdict(list)
        # Versions at or below this one cannot be rebuilt any more.
        self._floor: dict[Storage, int] = defaultdict(int)
        self._listeners: dict[Storage, list[Callable[[], None]]] = defaultdict(list)

    def get(self, storage: Storage, key: Key) -> Stored | None:
        return self._objects[storage].get(key)

    def items(self, storage: Storage, namespace: str = "") -> list[Stored]:
        """All objects of a kind, sorted by key, as in etcd."""
        found = self._objects[storage]
        return [found[key] for key in sorted(found) if not namespace or key[0] == namespace]

    def count(self, storage: Storage) -> int:
        return len(self._objects[storage])

    def put(self, storage: Storage, key: Key, content: Content, *, actor: str, verb: str) -> Stored:
        """Writes a new version. Nothing else sets the resourceVersion."""
        self.version += 1
        stored = Stored(
            key, self.version, {**content, "metadata": {**content["metadata"], "resourceVersion": str(self.version)}}
        )
        before = self._objects[storage].get(key)
        self._objects[storage][key] = stored
        self._record(storage, before, stored, actor, verb)
        return stored

    def remove(self, storage: Storage, key: Key, *, actor: str, verb: str) -> Stored:
        """Removes the object and returns its last state with the version of the deletion, as the real server does."""
        self.version += 1
        before = self._objects[storage].pop(key)
        self._record(storage, before, None, actor, verb)
        last = {**before.content, "metadata": {**before.content["metadata"], "resourceVersion": str(self.version)}}
        return Stored(key, self.version, last)

    def _record(self, storage: Storage, before: Stored | None, after: Stored | None, actor: str, verb: str) -> None:
        subject = after or before
        assert subject is not None
        change = ObjectChange(
            version=self.version,
            storage=storage,
            key=subject.key,
            before=before,
            after=after,
            actor=actor,
            verb=verb,
            at=self.clock(),
        )
        self.journal.append(change)
        history = self._history[storage]
        history.append(change)
        if len(history) > self._history_length:
            surplus = len(history) // 2
            self._floor[storage] = history[surplus - 1].version
            del history[:surplus]
        for wake in tuple(self._listeners[storage]):
            wake()

    def backup(self) -> Backup:
        """What `restore` needs, like a snapshot of etcd."""
        return Backup(version=self.version, objects={storage: dict(found) for storage, found in self._objects.items()})

    def restore(self, backup: Backup, storages: Iterable[Storage]) -> None:
        """The objects of these kinds and the counter of versions as in the backup: later versions are given out again.
        Watches get a 410."""
        self.version = backup.version
        for storage in storages:
            self._objects[storage] = dict(backup.objects.get(storage, {}))
            self._history[storage].clear()
            self._floor[storage] = self.version

    def floor(self, storage: Storage) -> int:
        """The oldest version since which every change of the kind is still known."""
        return self._floor[storage]

    def forget_history(self) -> None:
        """As a compaction does: older watches and continue tokens get a 410."""
        for storage in self._objects:
            self._history[storage].clear()
            self._floor[storage] = self.version

    def changes_after(self, storage: Storage, version: int) -> list[ObjectChange]:
        """The changes of a kind since a version, oldest first. Raises HistoryGone if the history is too short."""
        if version < self._floor[storage]:
            raise HistoryGone(self._floor[storage])
        history = self._history[storage]
        low, high = 0, len(history)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if history[middle].version <= version else (low, middle)
        return history[low:]

    def items_at(self, storage: Storage, version: int, namespace: str = "") -> list[Stored]:
        """The objects of a kind as they were at an older version. Raises HistoryGone if the history is too short."""
        state = dict(self._objects[storage])
        for change in reversed(self.changes_after(storage, version)):
            if change.before is None:
                state.pop(change.key, None)
            else:
                state[change.key] = change.before
        return [state[key] for key in sorted(state) if not namespace or key[0] == namespace]

    def listen(self, storages: Iterable[Storage], wake: Callable[[], None]) -> Callable[[], None]:
        """Calls `wake` after every change of these kinds. The returned function ends that."""
        watched = tuple(storages)
        for storage in watched:
            self._listeners[storage].append(wake)

        def stop() -> None:
            for storage in watched:
                self._listeners[storage].remove(wake)

        return stop
