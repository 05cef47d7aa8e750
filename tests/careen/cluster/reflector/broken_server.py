"""BrokenServer: an API server on virtual time whose watches fail in every known way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from careen.cluster.reflector.reflector import WatchedKind
from careen.cluster.wire.errors import NotSent, Unclear, raise_unless_ok
from careen.cluster.wire.transport import Request, Response
from scheduler_core.testing.builders import a_node, a_pod
from tests.careen.virtual_shell import START, status

Json = dict[str, Any]

NODES = WatchedKind(kind="Node", paths=("/api/v1/nodes",))
PODS = WatchedKind(kind="Pod", paths=("/api/v1/pods",))
CLASSES = WatchedKind(
    kind="DeviceClass",
    paths=tuple(f"/apis/resource.k8s.io/{version}/deviceclasses" for version in ("v1", "v1beta2", "v1beta1")),
)
SOURCES = (NODES, PODS, CLASSES)
_API = {"Node": "v1", "Pod": "v1", "DeviceClass": "resource.k8s.io/v1beta1"}
_KIND = {"nodes": "Node", "pods": "Pod", "deviceclasses": "DeviceClass"}

FAULTS = (
    "cut",  # the connection breaks
    "half a line",
    "end",  # a watch that ends normally
    "empty",  # 200, and nothing
    "gone",  # ERROR 410 inside the stream
    "gone at once",  # 410 instead of a watch
    "error",  # ERROR 500 inside the stream
    "busy",  # 429
    "failed",  # 503
    "refused",  # the connection is refused: the server restarts
    "silence",
    "again",  # the last events again, oldest first
    "older",  # one old event, and no other events
    "page of a proxy",
    "another kind",
    "bookmark",
)


@dataclass
class BrokenServer:
    """An API server in memory. Each new watch has the next fault in `faults`. While watches run, the server makes the
    changes in `changes`. When `faults` is empty, a new watch has no fault and never ends."""

    faults: list[str] = field(default_factory=list)
    changes: list[tuple[str, str, str]] = field(default_factory=list)
    page_size: int = 2
    list_faults: list[str] = field(default_factory=list)
    unserved: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.version = 10
        self.objects: dict[tuple[str, str], Json] = {}
        self.log: list[tuple[int, str, Json]] = []
        self.oldest = 0
        self.requests: list[Request] = []
        self._listed: dict[tuple[str, int], list[Json]] = {}  # later pages show the cluster of the first one
        self._told: dict[str, int] = {}
        self._moved = asyncio.Event()

    @property
    def waiting(self) -> set[str]:
        """Return the kinds of objects whose watch is still open and has delivered every event."""
        return {kind for kind, version in self._told.items() if version == self.version}

    # ---- the cluster's content ----

    def change(self, verb: str, kind: str, name: str) -> None:
        """Carry out one change. `put` creates an object or gives an existing object new content, and `drop` deletes an
        object."""
        self.version += 1
        key = (kind, name)
        if verb == "drop":
            if key in self.objects:
                self._tell("DELETED", {**self.objects.pop(key)})
            return
        event = "MODIFIED" if key in self.objects else "ADDED"
        self.objects[key] = _manifest(kind, name, self.version)
        self._tell(event, self.objects[key])

    def _tell(self, event: str, manifest: Json) -> None:
        manifest = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self.version)}}
        self.log.append((self.version, event, manifest))
        self._moved.set()
        self._moved.clear()

    def forget(self) -> None:
        """Forget the history. The server then refuses each watch that asks for events from before the current
        version."""
        self.oldest = self.version

    def pages(self) -> list[Json]:
        """Return the pages of a complete list for each kind, as a client would receive them now."""
        return [
            {"kind": f"{kind}List", "apiVersion": _API[kind], "items": self._items(kind)}
            for kind in ("Node", "Pod", "DeviceClass")
        ]

    def _items(self, kind: str) -> list[Json]:
        return [manifest for (each, _), manifest in sorted(self.objects.items()) if each == kind]

    # ---- lists ----

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        fault = self.list_faults.pop(0) if self.list_faults else ""
        if fault == "refused":
            raise NotSent("nobody listens")
        if fault == "cut":
            raise Unclear("the connection broke")
        if fault == "gone" and "continue" in request.query:
            return status(410, "Expired")
        kind = _KIND[request.path.rsplit("/", 1)[-1]]
        if not self._serves(kind, request.path):
            return Response(status=404, headers={}, body=b"404 page not found")
        start, version = map(int, request.query.get("continue", f"0:{self.version}").split(":"))
        items, end = self._listed.setdefault((kind, version), self._items(kind)), start + self.page_size
        more = f"{end}:{version}" if end < len(items) else ""
        page = {
            "kind": f"{kind}List",
            "apiVersion": _API[kind],
            "metadata": {"resourceVersion": str(version), "continue": more},
            "items": items[start:end],
        }
        return Response(status=200, headers={}, body=json.dumps(page).encode())

    def _serves(self, kind: str, path: str) -> bool:
        return kind not in self.unserved and f"/{_API[kind]}/" in path

    # ---- watches ----

    async def chunks(self, request: Request) -> AsyncGenerator[bytes, None]:
        self.requests.append(request)
        await asyncio.sleep(0)
        if "sendInitialEvents" in request.query:  # a server without watch lists
            status = _status(422, "Invalid")
            raise_unless_ok(request, Response(status=422, headers={}, body=json.dumps(status).encode()), now=START)
        kind = _KIND[request.path.rsplit("/", 1)[-1]]
        position = int(request.query["resourceVersion"])
        fault = self.faults.pop(0) if self.faults else ""
        _refuse(request, fault)
        if position < self.oldest:
            yield _line("ERROR", _status(410, "Expired"))
            return
        if not fault:
            async for event in self._on(kind, position):
                yield event
        missed, seen = self._first(fault, kind, position), self.version
        for event in missed:
            yield event
        if fault not in ("empty", "older"):
            for chunk in (*self._next(fault, kind, seen), *self._broken(fault, kind)):
                yield chunk
        if fault in ("cut", "silence"):
            raise Unclear("the connection broke")

    def _first(self, fault: str, kind: str, position: int) -> list[bytes]:
        """Return the events that a new watch sends first: the events after the version in the client's request. Some
        faults repeat old events or leave out events."""
        past = self._events(kind, 0)
        if fault == "empty":
            return []
        if fault == "older":
            return self._first_of_a_present_object(kind)
        return [*(past[-5:] if fault == "again" else ()), *self._events(kind, position)]

    def _next(self, fault: str, kind: str, seen: int) -> list[bytes]:
        if self.changes:
            self.change(*self.changes.pop(0))
        return [] if fault == "cut" else self._events(kind, seen)  # the last event is lost on its way

    async def _on(self, kind: str, seen: int) -> AsyncGenerator[bytes, None]:
        """Yield the events of a watch that has no fault and never ends."""
        while True:
            if self.changes:
                self.change(*self.changes.pop(0))
            before, seen = seen, self.version
            for event in self._events(kind, before):
                yield event
            self._told[kind] = seen
            await asyncio.sleep(0)
            while not self.changes and seen == self.version:
                await self._moved.wait()

    def _broken(self, fault: str, kind: str) -> Iterable[bytes]:
        if fault == "half a line":
            yield _line("MODIFIED", _manifest(kind, "half", self.version + 1))[:-9]
        if fault == "gone":
            self.forget()
            yield _line("ERROR", _status(410, "Expired"))
        if fault == "error":
            yield _line("ERROR", _status(500, "InternalError"))
        if fault == "page of a proxy":
            yield b"<html>Please log in\n</html>\n"
        if fault == "another kind":
            yield _line("ADDED", {**_manifest("Pod", "stray", 99), "kind": "Secret"})
        if fault == "bookmark":
            meta = {"resourceVersion": str(self.version), "creationTimestamp": None}
            yield _line("BOOKMARK", {"kind": kind, "apiVersion": _API[kind], "metadata": meta})

    def _first_of_a_present_object(self, kind: str) -> list[bytes]:
        """Return the oldest event of an object that still exists. The server sends no old event of a deleted object:
        the client would add the object again, and could not detect that the object no longer exists."""
        present = ((event, each) for _, event, each in self.log if (kind, each["metadata"]["name"]) in self.objects)
        return [_line(event, each) for event, each in present if each["kind"] == kind][:1]

    def _events(self, kind: str, after: int) -> list[bytes]:
        return [
            _line(event, manifest)
            for version, event, manifest in self.log
            if version > after and manifest["kind"] == kind
        ]


def _refuse(request: Request, fault: str) -> None:
    if fault == "refused":
        raise NotSent("nobody listens")
    answers = {"gone at once": status(410, "Expired"), "busy": status(429, retry_after="1"), "failed": status(503)}
    if fault in answers:
        raise_unless_ok(request, answers[fault], now=START)


def _line(event: str, manifest: Json) -> bytes:
    return json.dumps({"type": event, "object": manifest}).encode() + b"\n"


def _status(code: int, reason: str) -> Json:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}


def _manifest(kind: str, name: str, version: int) -> Json:
    """Return an object whose content differs in each version."""
    if kind == "Node":
        manifest: Json = dict(a_node(name).manifest)
        manifest["metadata"] = {**manifest["metadata"], "labels": {"seen": str(version)}}
    elif kind == "Pod":
        manifest = json.loads(json.dumps(a_pod(name).manifest))
        manifest["metadata"]["labels"] = {"seen": str(version)}
        if version % 3:
            manifest["spec"]["nodeName"] = f"n{version % 4}"
            manifest["status"]["phase"] = "Running"
    else:
        manifest = {"metadata": {"name": name}, "spec": {}}
    meta = {**manifest["metadata"], "uid": f"uid-{kind}-{name}", "resourceVersion": str(version)}
    return {**manifest, "kind": kind, "apiVersion": _API[kind], "metadata": meta}


def drawn_changes(draw: Sequence[int]) -> list[tuple[str, str, str]]:
    """Turn random numbers into changes of objects. Of six changes, three concern pods, two concern nodes, and one
    concerns a device class."""
    kinds = ("Pod", "Pod", "Pod", "Node", "Node", "DeviceClass")
    return [("drop" if number % 3 == 0 else "put", kinds[number % 6], f"n{number % 5}") for number in draw]
