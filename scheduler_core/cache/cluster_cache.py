"""A cluster in memory that follows lists and watch events, as kube-scheduler's cache does.

An event costs as much as it changes, whatever the size of the cluster. Snapshots never change, and share all parts that
are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from scheduler_core.arguments import expect
from scheduler_core.cache.changes import Change, Changes
from scheduler_core.cache.events import (
    BOOKMARK,
    DELETED,
    Event,
    Item,
    Listing,
    Sync,
    UnusableEventError,
    WatchEvent,
    read_event,
)
from scheduler_core.cache.other_objects import OtherObjects
from scheduler_core.cache.placed_pods import PlacedPods
from scheduler_core.cache.versions import Versions
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.object_reader import ObjectReader
from scheduler_core.model.manifests.repeated_pods import WatchedPod
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.snapshot import Snapshot

_Any = TypeVar("_Any")


class ClusterCache:
    """A cluster in memory that watch events update. Not thread-safe.

    Its snapshots have the same nodes, pods, counts and other objects as one that is loaded from the same objects. Three
    things may differ with the order of the events: the order of `pending`, the rows of the nodes, and the order in
    which the scheduler searches the nodes.
    """

    def __init__(self) -> None:
        self._reader = ObjectReader()
        self._versions = Versions()
        self._placed = PlacedPods()
        self._others = OtherObjects()
        self._problems: dict[tuple[str, str], ManifestError] = {}
        self._snapshot: Snapshot | None = None

    def __repr__(self) -> str:
        return f"<ClusterCache {self.snapshot()!r}>"

    @property
    def kinds(self) -> Iterable[str]:
        """What matters for scheduling. Events of other kinds are ignored."""
        return self._reader.kinds

    def snapshot(self) -> Snapshot:
        """The current cluster; the same object until something changes."""
        if self._snapshot is None:
            self._snapshot = self._placed.snapshot(self._others, tuple(self._problems.values()))
        return self._snapshot

    def find(self, kind: str, key: str) -> Any:
        """The cached object of any kind as the API server has it; None if it does not exist. A pod has no node while it
        is only assumed to be on one."""
        expect("kind", kind, str)
        expect("key", key, str)
        if kind == "Pod":
            return self._placed.written(key)
        return self._placed.node(key) if kind == "Node" else self._others.get(kind, key)

    def version(self, kind: str, key: str) -> int | None:
        """The object's resourceVersion; None if it does not exist or has no number as its version."""
        expect("kind", kind, str)
        expect("key", key, str)
        return self._versions.of(kind, key)

    def find_pod(self, key: str) -> Pod | None:
        """The cached pod "namespace/name"; None if it does not exist or has finished."""
        expect("key", key, str)
        return self._placed.find(key)

    def apply(self, event: Event) -> Changes:
        """Applies one watch event or a whole list, and returns what changed that matters for scheduling. An event is
        the line from the API server, or a mapping `{"type": "MODIFIED", "object": {…}}`. A list is a body such as a
        PodList, or a `Sync` with the pages of a long list; `relist` applies a long list in slices.

        A list is complete for its kind: cached objects that are missing from it are deleted. An event that is provably
        older than the cached object changes nothing. An object that cannot be read is ignored, and listed in the
        snapshot's `problems`. Raises UnusableEventError for any other argument, and for events of type ERROR.
        """
        return self.apply_read(read_event(event))

    def apply_read(self, read: WatchEvent | Listing) -> Changes:
        """`apply` of what `read_event` gave."""
        if not self._reader.knows(read.kind, read.api_version):
            return ()
        if isinstance(read, Listing):
            return tuple(change for slice_ in self._listed(read.kind, read.pages) for change in slice_)
        if read.type == BOOKMARK:
            return ()
        changes = self._follow(read.kind, read.item, is_deletion=read.type == DELETED)
        if changes:
            self._snapshot = None
        return changes

    def relist(self, sync: Sync) -> Iterator[Changes]:
        """`apply` of a long list in slices of at most 250 objects of one page, so that the caller can do other work in
        between: schedule, assume, forget, and apply events of other kinds. The cache is a mixture of old and new
        objects until the end. An event of the same kind must wait for the end."""
        listing = read_event(sync)
        if not isinstance(listing, Listing):
            raise UnusableEventError(f"an event of type {listing.type} is no list: pass a Sync with its pages")
        return self._listed(listing.kind, listing.pages) if self._reader.knows(listing.kind, "") else iter(())

    def assume(self, key: str, node_name: str, *, uid: str = "") -> None:
        """Treats the pending pod "namespace/name" as bound to this node before the binding arrives, or until another
        pod of this name is seen. Raises UnknownPodError if the pod is not pending or has another `uid`,
        UnknownNodeError if the node does not exist."""
        expect("key", key, str)
        self._placed.assume(key, node_name, uid)
        self._snapshot = None

    def forget(self, key: str, *, uid: str = "") -> None:
        """Undoes `assume` after a failed binding: the pod is pending again. Raises UnknownPodError if no pod of this
        name, with this `uid` if given, is assumed to be on a node. A deletion ends it as well: expect the error."""
        expect("key", key, str)
        self._placed.forget(key, uid)
        self._snapshot = None

    def assume_object(self, kind: str, key: str, value: Any) -> None:
        """Shows a claim or volume in snapshots as it will be after a write, until an event changes or deletes it.
        Nothing, if the object does not exist."""
        self._others.assume(kind, key, value)
        self._snapshot = None

    def forget_object(self, kind: str, key: str, value: Any) -> None:
        """Undoes `assume_object` of this very `value`, if it still counts."""
        self._others.forget(kind, key, value)
        self._snapshot = None

    def assumed_node(self, key: str, uid: str = "") -> str:
        """The node on which this pod is assumed to be; "" if none."""
        expect("key", key, str)
        assumed = self._placed.assumed.get(key)
        return "" if assumed is None or (uid and assumed.pod.uid != uid) else assumed.node

    def sizes(self) -> Mapping[str, int]:
        """The number of entries in each part. Creating and deleting objects again and again should not increase
        them."""
        table = self._placed.world.placements.table
        return {
            "nodes": len(self._placed.world.columns),
            "pods": len(self._versions.keys("Pod")),
            "other objects": len(self._others),
            "shared parts of pods": len(self._reader.pods),
            "kinds of pods": len(table.kinds),
            "groups of affinity": len(table.affinities),
        }

    # ---- one object ----

    def _follow(self, kind: str, item: Item, *, is_deletion: bool) -> Changes:
        key = _key(kind, item)
        if self._versions.is_certainly_older(kind, key, item.version):
            return ()
        if not is_deletion:
            return self._put(kind, key, item)
        if self._is_of_another(kind, key, item.uid):
            return ()
        self._versions.drop(kind, key, item.version)
        return self._drop(kind, key)

    def _is_of_another(self, kind: str, key: str, uid: str) -> bool:
        """The cached object has this name but another uid: the event is about an earlier object and must not remove
        it."""
        held = self.find(kind, key) if kind in ("Pod", "Node") else None
        return held is not None and bool(uid and held.uid) and held.uid != uid

    def _put(self, kind: str, key: str, item: Item) -> Changes:
        value = self._value(kind, item)
        self._versions.keep(kind, key, item.version)
        return self._keep(kind, key, value)

    def _value(self, kind: str, item: Item) -> Any:
        written = item.written
        if isinstance(written, WatchedPod):
            return self._reader.watched_pod(written)
        if isinstance(written, msgspec.Raw):
            return self._reader.read_raw(kind, written)
        return self._reader.read(kind, written)

    def _keep(self, kind: str, key: str, value: Any) -> Changes:
        if isinstance(value, ManifestError):
            changes = self._drop(kind, key)
            self._problems[kind, key] = value
            return changes or (Change(kind=kind, key=key, old=None, new=None),)
        was_problem = self._problems.pop((kind, key), None) is not None
        if isinstance(value, Pod):
            changes = self._placed.put_pod(value)
        elif isinstance(value, Node):
            changes = self._placed.put_nodes((value,))
        else:
            changes = self._others.put(kind, key, value)
        return changes if changes or not was_problem else (Change(kind=kind, key=key, old=None, new=None),)

    def _drop(self, kind: str, key: str) -> Changes:
        was_problem = self._problems.pop((kind, key), None) is not None
        if kind == "Pod":
            changes = self._placed.drop_pod(key)
        elif kind == "Node":
            changes = self._placed.drop_node(key)
        else:
            changes = self._others.drop(kind, key)
        return changes if changes or not was_problem else (Change(kind=kind, key=key, old=None, new=None),)

    # ---- a list ----

    def _listed(self, kind: str, pages: Iterator[list[Item]]) -> Iterator[Changes]:
        self._versions.forget_deletions(kind)
        for changes in self._nodes_listed(pages) if kind == "Node" else self._others_listed(kind, pages):
            if changes:
                self._snapshot = None
            yield changes

    def _others_listed(self, kind: str, pages: Iterator[list[Item]]) -> Iterator[Changes]:
        """Then removes the objects that are missing from the list."""
        seen: set[str] = set()
        for part in _parts(pages):
            changes: list[Change] = []
            for item in part:
                key = _key(kind, item)
                seen.add(key)
                changes += self._put(kind, key, item)
            yield tuple(changes)
        yield from self._dropped_all_but(kind, seen)

    def _nodes_listed(self, pages: Iterator[list[Item]]) -> Iterator[Changes]:
        """Removes missing nodes before it adds new ones, so that a zone that has lost all its nodes is forgotten.
        client-go's queue works in the same order (reconcileReplacement in tools/cache/the_real_fifo.go, v0.36)."""
        listed: dict[str, tuple[Any, int | None]] = {}
        for items in _parts(pages):
            listed.update((_key("Node", item), (self._value("Node", item), item.version)) for item in items)
            yield ()
        yield from self._dropped_all_but("Node", listed)
        nodes: list[Node] = []
        for part in _in_slices(tuple(listed.items())):
            changes: list[Change] = []
            for key, (value, version) in part:
                self._versions.keep("Node", key, version)
                if isinstance(value, ManifestError):
                    changes += self._keep("Node", key, value)
                    continue
                if self._problems.pop(("Node", key), None) is not None:
                    changes.append(Change(kind="Node", key=key, old=None, new=None))
                nodes.append(value)
            yield tuple(changes)
        yield self._placed.put_nodes(nodes)

    def _dropped_all_but(self, kind: str, kept: Collection[str]) -> Iterator[Changes]:
        for part in _in_slices([key for key in self._versions.keys(kind) if key not in kept]):
            changes: list[Change] = []
            for key in part:
                self._versions.drop(kind, key, None)
                changes += self._drop(kind, key)
            yield tuple(changes)


_SLICE: Final = 250
"""Objects that are applied between other work: some 10 ms."""


def _parts(pages: Iterator[list[Item]]) -> Iterator[tuple[Item, ...]]:
    """At least one of each page: the next page may not be there yet."""
    for page in pages:
        items = iter(page)
        del page  # it must not stay in memory while the next one is read
        yield tuple(islice(items, _SLICE))
        while part := tuple(islice(items, _SLICE)):
            yield part


def _in_slices(values: Sequence[_Any]) -> Iterator[Sequence[_Any]]:
    return (values[start : start + _SLICE] for start in range(0, len(values), _SLICE))


def _key(kind: str, item: Item) -> str:
    """A name or "namespace/name". A pod without a namespace is in "default"."""
    return f"default/{item.key}" if kind == "Pod" and "/" not in item.key else item.key
