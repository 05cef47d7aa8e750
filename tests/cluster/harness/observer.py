"""Watches nodes, pods and the lock, and records each event with its time.

`rules.py` and `figures.py` read the recorded values afterwards, for the tests and the bench.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import urllib3

from tests.cluster.harness.api import Api, ApiError, Object
from tests.cluster.harness.objects import condition, condition_reason, owner_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """The state of a node from `at` until the next recorded state of this node."""

    at: float
    name: str
    uid: str
    exists: bool
    unschedulable: bool
    ready: bool
    boot_id: str
    taints: tuple[tuple[str, str], ...]  # key, effect
    labels: dict[str, str]
    annotations: dict[str, str]

    @property
    def down(self) -> bool:
        return self.exists and (self.unschedulable or not self.ready)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSeen:
    """The text of the lock annotation from `at` on. It is None if the annotation or the DaemonSet does not exist."""

    at: float
    uid: str
    text: str | None

    @property
    def holders(self) -> tuple[str, ...]:
        """Return the nodes that have a claim in the lock. Reads both lock formats of kured. A paused lock has no
        holders.
        """
        try:
            content = json.loads(self.text or "{}")
        except ValueError:
            return ()
        entries = content.get("locks") if isinstance(content.get("locks"), list) else [content]
        names = [entry.get("nodeID", "") for entry in entries if isinstance(entry, dict)]
        return tuple(name for name in names if name and name != "manual")


@dataclass(slots=True, kw_only=True)
class PodLife:
    """One pod, from its first to its last event. Times are seconds since the epoch."""

    uid: str
    namespace: str
    name: str
    owner: str  # "StatefulSet/db", or "" for a bare pod
    created_at: float
    labels: dict[str, str]
    node: str = ""
    scheduled_at: float | None = None
    ready_at: float | None = None
    deleting_at: float | None = None
    gone_at: float | None = None
    finished: bool = False
    evicted: bool = False  # by the eviction API, which respects budgets

    @property
    def from_daemonset(self) -> bool:
        return self.owner.startswith("DaemonSet/")

    @property
    def is_static(self) -> bool:
        """Whether the pod is the mirror pod of a static pod. The owner of a mirror pod is the Node."""
        return self.owner.startswith("Node/")


@dataclass(slots=True)
class Seen:
    """The recorded states of nodes, lock and pods since the last `forget`."""

    nodes: list[NodeSeen] = field(default_factory=list)
    locks: list[LockSeen] = field(default_factory=list)
    pods: dict[str, PodLife] = field(default_factory=dict)


Take = Callable[[str, Object, float], None]


@dataclass(slots=True, kw_only=True)
class _Collection:
    """One watch, and the objects that exist now. If `only` is not None, the watch follows only the object with this
    name."""

    path: str
    take: Take
    only: str | None
    known: dict[str, Object] = field(default_factory=dict)

    def has(self, item: Object) -> bool:
        return self.only in (None, item["metadata"]["name"])


class Observer:
    """Watches nodes, pods and lock until `close`. `node`, `pods` and `lock_now` return the current state. `seen` has
    all recorded states.
    """

    def __init__(self, connect: Callable[[], Api], *, daemonset: tuple[str, str], lock_annotation: str) -> None:
        self.seen = Seen()
        self.began_at = time.time()
        """When the history in `seen` begins."""
        self.daemonset = daemonset
        self.lock_annotation = lock_annotation
        self.nodes: dict[str, Object] = {}
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._connect = connect
        namespace, name = daemonset
        self._follow("/api/v1/nodes", self._node)
        self._follow("/api/v1/pods", self._pod)
        self._follow(f"/apis/apps/v1/namespaces/{namespace}/daemonsets", self._daemonset, only=name)

    def forget(self) -> None:
        """Forget the history, except the current state of nodes, lock and pods."""
        with self._lock:
            self.began_at = now = time.time()
            last = {seen.name: seen for seen in self.seen.nodes}
            self.seen.nodes = [replace(seen, at=now) for seen in last.values() if seen.exists]
            self.seen.locks = self.seen.locks[-1:]
            self.seen.pods = {uid: life for uid, life in self.seen.pods.items() if life.gone_at is None}

    def lock_now(self) -> LockSeen:
        with self._lock:
            return self.seen.locks[-1] if self.seen.locks else LockSeen(at=0, uid="", text=None)

    def node_history(self, name: str) -> list[NodeSeen]:
        with self._lock:
            return [seen for seen in self.seen.nodes if seen.name == name]

    def node(self, name: str) -> NodeSeen | None:
        """Return the current state of the node, or None if the node does not exist."""
        history = self.node_history(name)
        return history[-1] if history and history[-1].exists else None

    def pods(self) -> list[PodLife]:
        with self._lock:
            return [life for life in self.seen.pods.values() if life.gone_at is None]

    def close(self) -> None:
        # Each thread ends with its watch, some seconds later; no wait is needed.
        self._ended.set()

    # -- following one collection

    def _follow(self, path: str, take: Take, only: str | None = None) -> None:
        collection = _Collection(path=path, take=take, only=only)
        threading.Thread(target=self._watch, args=(collection,), name=f"watch {path}", daemon=True).start()

    def _watch(self, collection: _Collection) -> None:
        api: Api | None = None
        while not self._ended.is_set():
            try:
                api = api or self._connect()
                version = self._list(api, collection)
                self._stream(api, collection, version)
            except (ApiError, urllib3.exceptions.HTTPError, ValueError):
                # The server restarts, or the version is too old: list again.
                if api is not None:
                    api.close()
                api = None
                self._ended.wait(0.3)
        if api is not None:
            api.close()

    def _list(self, api: Api, collection: _Collection) -> str:
        answer = api.get(collection.path)
        items = {item["metadata"]["uid"]: item for item in answer["items"] if collection.has(item)}
        now = time.time()
        for uid in collection.known.keys() - items.keys():
            self._hand(collection, "DELETED", collection.known[uid], now)
        for item in items.values():
            self._hand(collection, "MODIFIED", item, now)
        return str(answer["metadata"]["resourceVersion"])

    def _stream(self, api: Api, collection: _Collection, version: str) -> None:
        # Short watches: `close` waits for their end, and a new watch continues at the same version.
        while not self._ended.is_set():
            for event in api.watch(collection.path, version, seconds=5):
                item = event["object"]
                if event["type"] == "ERROR":
                    raise ApiError(int(item.get("code", 500)), item)
                version = item["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK" and collection.has(item):
                    self._hand(collection, event["type"], item, time.time())

    def _hand(self, collection: _Collection, kind: str, item: Object, at: float) -> None:
        with self._lock:
            if kind == "DELETED":
                collection.known.pop(item["metadata"]["uid"], None)
            else:
                collection.known[item["metadata"]["uid"]] = item
            collection.take(kind, item, at)

    # -- one object at a time

    def _node(self, kind: str, item: Object, at: float) -> None:
        name = item["metadata"]["name"]
        if kind == "DELETED":
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = item
        fresh = node_seen(item, at, exists=kind != "DELETED")
        last = next((seen for seen in reversed(self.seen.nodes) if seen.name == name), None)
        if last is None or replace(last, at=at) != fresh:
            self.seen.nodes.append(fresh)

    def _daemonset(self, kind: str, item: Object, at: float) -> None:
        text = item["metadata"].get("annotations", {}).get(self.lock_annotation) if kind != "DELETED" else None
        fresh = LockSeen(at=at, uid=item["metadata"]["uid"] if kind != "DELETED" else "", text=text)
        if not self.seen.locks or replace(self.seen.locks[-1], at=at) != fresh:
            self.seen.locks.append(fresh)

    def _pod(self, kind: str, item: Object, at: float) -> None:
        meta = item["metadata"]
        life = self.seen.pods.get(meta["uid"])
        if life is None:
            life = PodLife(
                uid=meta["uid"],
                namespace=meta["namespace"],
                name=meta["name"],
                owner=owner_of(item),
                created_at=at,
                labels=meta.get("labels", {}),
            )
            self.seen.pods[meta["uid"]] = life
        if node := item["spec"].get("nodeName", ""):
            life.node = node
            life.scheduled_at = life.scheduled_at or at
        if condition(item, "Ready") == "True":
            life.ready_at = life.ready_at or at
        if item.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            life.finished = True
        if condition_reason(item, "DisruptionTarget") == "EvictionByEvictionAPI":
            life.evicted = True
        if meta.get("deletionTimestamp"):
            life.deleting_at = life.deleting_at or at
        if kind == "DELETED":
            life.gone_at = life.gone_at or at
            life.deleting_at = life.deleting_at or at


def node_seen(item: Object, at: float, *, exists: bool) -> NodeSeen:
    meta, spec = item["metadata"], item.get("spec", {})
    return NodeSeen(
        at=at,
        name=meta["name"],
        uid=meta["uid"],
        exists=exists,
        unschedulable=bool(spec.get("unschedulable", False)),
        ready=condition(item, "Ready") == "True",
        boot_id=item.get("status", {}).get("nodeInfo", {}).get("bootID", ""),
        taints=tuple(sorted((taint["key"], taint["effect"]) for taint in spec.get("taints", ()))),
        labels=dict(meta.get("labels", {})),
        annotations={key: value for key, value in meta.get("annotations", {}).items() if "kwok" not in key},
    )


def as_json(text: str | None) -> Any:
    """Parse the text of an annotation. Return an empty dictionary if the annotation is missing or empty."""
    return json.loads(text) if text else {}
