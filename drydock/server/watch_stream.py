"""The store's changes as the events of a watch, in order, restricted to what its request selects.

`api_server.py` writes the bytes. As in apiserver's `storage/cacher/cache_watcher.go`, an object that stops matching is
reported as deleted, one that begins to match as added.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from drydock.hosts.wake_up import wait_at_most
from drydock.server.kinds.resources import ResourceType
from drydock.server.requests.selectors import Matches
from drydock.server.store import HistoryGone, ObjectChange, Store

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """A watch's start, selectors, duration in seconds, and whether it has bookmarks."""

    resource: ResourceType
    namespace: str
    name: str
    selected: Matches | None
    from_version: int | None
    initial_events: bool
    bookmarks: bool
    timeout_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    kind: str
    content: dict[str, Any]


async def watch_events(
    store: Store, request: WatchRequest, *, bookmark_seconds: float, now: Callable[[], float]
) -> AsyncIterator[StreamEvent]:
    """Yields events until the time is over. A start that is too old yields one ERROR event with code 410, as a real
    server does."""
    changed = asyncio.Event()
    stop_listening = store.listen([request.resource.storage], changed.set)
    deadline, next_bookmark = now() + request.timeout_seconds, now() + bookmark_seconds
    try:
        seen = store.version
        if request.from_version is None or request.initial_events:
            for event in _present_state(store, request):
                yield event
        else:
            seen = request.from_version
        while True:
            changed.clear()
            try:
                events = _events_after(store, request, seen)
            except HistoryGone as gone:
                yield _too_old(seen, gone.oldest)
                return
            seen = max(seen, store.version)
            for event in events:
                yield event
            if now() >= deadline:
                break
            if request.bookmarks and now() >= next_bookmark:
                yield _bookmark(request.resource, seen)
                next_bookmark = now() + bookmark_seconds
            await wait_at_most(changed, (min(deadline, next_bookmark) if request.bookmarks else deadline) - now())
        if request.bookmarks:
            yield _bookmark(request.resource, seen)
    finally:
        stop_listening()


def _events_after(store: Store, request: WatchRequest, version: int) -> list[StreamEvent]:
    seen_by_client = (_event(change, request) for change in store.changes_after(request.resource.storage, version))
    return [event for event in seen_by_client if event is not None]


def _present_state(store: Store, request: WatchRequest) -> list[StreamEvent]:
    found = [item.content for item in store.items(request.resource.storage, request.namespace)]
    events = [StreamEvent(kind="ADDED", content=dict(content)) for content in found if _is_wanted(content, request)]
    if request.initial_events and request.bookmarks:
        end = _bookmark(request.resource, store.version)
        end.content["metadata"]["annotations"] = {INITIAL_EVENTS_END: "true"}
        events.append(end)
    return events


def _is_wanted(content: Any, request: WatchRequest) -> bool:
    metadata = content["metadata"]
    if request.namespace and metadata.get("namespace") != request.namespace:
        return False
    if request.name and metadata["name"] != request.name:
        return False
    return request.selected is None or request.selected(content)


def _event(change: ObjectChange, request: WatchRequest) -> StreamEvent | None:
    before = change.before.content if change.before is not None and _is_wanted(change.before.content, request) else None
    after = change.after.content if change.after is not None and _is_wanted(change.after.content, request) else None
    if after is not None:
        return StreamEvent(kind="ADDED" if before is None else "MODIFIED", content=dict(after))
    if before is None:
        return None
    # The last state that matched carries the version of this change.
    return StreamEvent(
        kind="DELETED", content={**before, "metadata": {**before["metadata"], "resourceVersion": str(change.version)}}
    )


def _bookmark(resource: ResourceType, version: int) -> StreamEvent:
    return StreamEvent(
        kind="BOOKMARK",
        content={
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {"resourceVersion": str(version), "creationTimestamp": None},
        },
    )


def _too_old(version: int, oldest: int) -> StreamEvent:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": "Expired",
        "code": 410,
        "message": f"too old resource version: {version} ({oldest})",
    }
    return StreamEvent(kind="ERROR", content=status)
