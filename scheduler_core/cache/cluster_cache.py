"""A cluster in memory that follows lists and watch events, as kube-scheduler's cache does.

An event costs as much as it changes, whatever the size of the cluster. Snapshots never change, and share all parts that
are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from scheduler_core.cache.events import BOOKMARK, DELETED, Event, Item, Listing, read_event
from scheduler_core.cache.other_objects import OtherObjects
from scheduler_core.cache.placed_pods import PlacedPods
from scheduler_core.cache.versions import Versions
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.object_reader import ObjectReader
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.snapshot import Snapshot


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

    @property
    def kinds(self) -> Iterable[str]:
        """What matters for scheduling. Events of other kinds are ignored."""
        return self._reader.kinds

    def snapshot(self) -> Snapshot:
        """The current cluster; the same object until something changes."""
        if self._snapshot is None:
            self._snapshot = self._placed.snapshot(self._others, tuple(self._problems.values()))
        return self._snapshot

    def find_pod(self, key: str) -> Pod | None:
        """The cached pod "namespace/name"; None if it does not exist or has finished."""
        return self._placed.find(key)

    def apply(self, event: Event) -> bool:
        """Applies one watch event or a whole list, and says whether something changed that matters for scheduling. An
        event is the line from the API server, or a mapping `{"type": "MODIFIED", "object": {…}}`. A list is a body such
        as a PodList, or a `Sync` with the pages of a long list.

        A list is complete for its kind: cached objects that are missing from it are deleted. An event that is provably
        older than the cached object changes nothing. An object that cannot be read is ignored, and listed in the
        snapshot's `problems`. Raises UnusableEventError for any other argument, and for events of type ERROR.
        """
        read = read_event(event)
        if not self._reader.knows(read.kind, read.api_version):
            return False
        if isinstance(read, Listing):
            changed = self._sync(read)
        elif read.type == BOOKMARK:
            return False
        else:
            changed = self._follow(read.kind, read.item, is_deletion=read.type == DELETED)
        if changed:
            self._snapshot = None
        return changed

    def assume(self, key: str, node_name: str) -> None:
        """Treats the pending pod "namespace/name" as bound to this node before the binding arrives. Raises
        UnknownPodError if the pod is not pending, UnknownNodeError if the node does not exist."""
        self._placed.assume(key, node_name)
        self._snapshot = None

    def forget(self, key: str) -> None:
        """Undoes `assume` after a failed binding: the pod is pending again. Raises UnknownPodError if it is not assumed
        to be on a node."""
        self._placed.forget(key)
        self._snapshot = None

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

    def _follow(self, kind: str, item: Item, *, is_deletion: bool) -> bool:
        key = _key(kind, item)
        if self._versions.is_certainly_older(kind, key, item.version):
            return False
        if not is_deletion:
            return self._put(kind, key, item)
        if self._is_of_another(kind, key, item.uid):
            return False
        self._versions.drop(kind, key, item.version)
        return self._drop(kind, key)

    def _is_of_another(self, kind: str, key: str, uid: str) -> bool:
        """The cached object has this name but another uid: the event is about an earlier object and must not remove
        it."""
        if kind == "Pod":
            held = self._placed.find(key)
            return held is not None and bool(uid and held.uid) and held.uid != uid
        world = self._placed.world
        node = world.node(key) if kind == "Node" and world.has_node(key) else None
        return node is not None and bool(uid and node.uid) and node.uid != uid

    def _put(self, kind: str, key: str, item: Item) -> bool:
        value = self._read(kind, key, item)
        return self._keep(kind, key, value)

    def _read(self, kind: str, key: str, item: Item) -> Any:
        written = item.written
        value = (
            self._reader.read_raw(kind, written)
            if isinstance(written, msgspec.Raw)
            else self._reader.read(kind, written)
        )
        self._versions.keep(kind, key, item.version)
        return value

    def _keep(self, kind: str, key: str, value: Any) -> bool:
        if isinstance(value, ManifestError):
            self._drop(kind, key)
            self._problems[kind, key] = value
            return True
        was_problem = self._problems.pop((kind, key), None) is not None
        if isinstance(value, Pod):
            changed = self._placed.put_pod(value)
        elif isinstance(value, Node):
            changed = self._placed.put_nodes((value,))
        else:
            changed = self._others.put(kind, key, value)
        return changed or was_problem

    def _drop(self, kind: str, key: str) -> bool:
        was_problem = self._problems.pop((kind, key), None) is not None
        if kind == "Pod":
            was_there = self._placed.drop_pod(key)
        elif kind == "Node":
            was_there = self._placed.drop_node(key)
        else:
            was_there = self._others.drop(kind, key)
        return was_there or was_problem

    # ---- a list ----

    def _sync(self, listing: Listing) -> bool:
        self._versions.forget_deletions(listing.kind)
        return self._sync_nodes(listing.items) if listing.kind == "Node" else self._sync_each(listing)

    def _sync_each(self, listing: Listing) -> bool:
        """Page by page, so that only one is in memory, then removes the objects that are missing from the list."""
        kind, changed = listing.kind, False
        seen: set[str] = set()
        try:
            for item in listing.items:
                key = _key(kind, item)
                seen.add(key)
                changed |= self._put(kind, key, item)
        finally:
            if changed:
                self._snapshot = None
        return self._drop_all_but(kind, seen) or changed

    def _sync_nodes(self, items: Iterator[Item]) -> bool:
        """Removes missing nodes before it adds new ones, so that a zone that has lost all its nodes is forgotten.
        client-go's queue works in the same order (reconcileReplacement in tools/cache/the_real_fifo.go, v0.36)."""
        listed = {_key("Node", item): item for item in items}
        changed = self._drop_all_but("Node", listed)
        values = {key: self._read("Node", key, item) for key, item in listed.items()}
        for key, value in values.items():
            if isinstance(value, ManifestError):
                changed |= self._keep("Node", key, value)
            else:
                changed |= self._problems.pop(("Node", key), None) is not None
        return self._placed.put_nodes(value for value in values.values() if isinstance(value, Node)) or changed

    def _drop_all_but(self, kind: str, kept: Iterable[str]) -> bool:
        changed = False
        for key in [key for key in self._versions.keys(kind) if key not in kept]:
            self._versions.drop(kind, key, None)
            changed |= self._drop(kind, key)
        return changed


def _key(kind: str, item: Item) -> str:
    """A name or "namespace/name". A pod without a namespace is in "default"."""
    return f"default/{item.key}" if kind == "Pod" and "/" not in item.key else item.key
