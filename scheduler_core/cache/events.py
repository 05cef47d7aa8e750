"""Watch events and list bodies, as a mapping or as the bytes that an API server sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from scheduler_core.arguments import expect_fields
from scheduler_core.model.manifests.error import object_key
from scheduler_core.model.manifests.object_reader import RawPage
from scheduler_core.model.manifests.repeated_pods import WatchedMeta, WatchedPod
from scheduler_core.values import Value

CHANGES: Final = frozenset({"ADDED", "MODIFIED"})
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
_OF_OBJECTS: Final = CHANGES | {DELETED}


class Item(Value):
    """One object of an event or a list."""

    written: Mapping[str, Any] | msgspec.Raw | WatchedPod
    key: str
    uid: str
    version: int | None


class WatchEvent(Value):
    """ADDED, MODIFIED, DELETED or BOOKMARK of one object. `line`: the API server's text, if it was read from one."""

    type: str
    kind: str
    api_version: str
    item: Item
    line: bytes = b""


class Listing(Value):
    """All objects of a kind, from one list body or from several pages."""

    kind: str
    api_version: str
    pages: Iterator[list[Item]]


def always() -> bool:
    return True


class Sync(Value):
    """The pages of a list with all objects of one kind. If reading `pages` raises an error, the list is incomplete, and
    the cache deletes nothing. `is_ready`: whether the next page, or the end, is there; else reading waits for it."""

    kind: str
    pages: Iterable[bytes | Mapping[str, Any]]
    is_ready: Callable[[], bool] = always

    def __post_init__(self) -> None:
        expect_fields(self)


Event = bytes | Mapping[str, Any] | Sync | WatchEvent
"""A WatchEvent was read by `read_event` before."""


class UnusableEventError(ValueError):
    """Neither a watch event nor a list body. The cache has not changed; the caller should list the objects again."""


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""


class _Head(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _WatchLine(msgspec.Struct):
    """`kind` and `items` are set if the line is a list body instead of an event."""

    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")


class _PodLine(msgspec.Struct, gc=False):
    """The line of an event about a pod. Nearly all events are, so they are decoded at once."""

    type: str = ""
    object: WatchedPod = WatchedPod()


_LINE: Final = msgspec.json.Decoder(_WatchLine)
_POD_LINE: Final = msgspec.json.Decoder(_PodLine)
_KIND_WITHIN: Final = 128  # bytes, of a line as API servers write it
_HEAD: Final = msgspec.json.Decoder(_Head)
_PAGE: Final = msgspec.json.Decoder(RawPage)


def read_event(event: Event) -> WatchEvent | Listing:
    """Raises UnusableEventError for anything else."""
    if isinstance(event, WatchEvent):
        return event
    if isinstance(event, Sync):
        return Listing(event.kind, "", _of_pages(event))
    try:
        return _read_raw(event) if isinstance(event, bytes) else _read_mapping(event)
    except (msgspec.MsgspecError, RecursionError, TypeError, AttributeError, UnicodeDecodeError) as trouble:
        if not isinstance(event, bytes | Mapping):
            given = f"got a {type(event).__name__}: pass the server's line as bytes, a mapping, or a Sync"
            raise UnusableEventError(f"an event is a line of a watch, or a list body; {given}") from None
        raise UnusableEventError(f"the text is neither a watch event nor a list body: {trouble}") from trouble


def _read_raw(event: bytes) -> WatchEvent | Listing:
    return _read_pod(event) or _read_any(event)


def _read_pod(event: bytes) -> WatchEvent | None:
    """None for any line that is not plainly a readable event about a pod."""
    if event.find(b'"Pod"', 0, _KIND_WITHIN) < 0:
        return None
    try:
        line = _POD_LINE.decode(event)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    pod = line.object
    if pod.kind != "Pod" or line.type not in _OF_OBJECTS:
        return None
    return WatchEvent(line.type, "Pod", pod.api_version, _item_of(pod.metadata, pod), event)


def _read_any(event: bytes) -> WatchEvent | Listing:
    line = _LINE.decode(event)
    if not line.type and line.kind.endswith("List"):
        items = [_raw_item(raw) for raw in _PAGE.decode(event).items or ()]
        return Listing(line.kind.removesuffix("List"), line.api_version, iter((items,)))
    head = _HEAD.decode(line.object)
    return _event(line.type, head, line.object, event)


def _read_mapping(event: Mapping[str, Any]) -> WatchEvent | Listing:
    kind = event.get("kind") or ""
    if event.get("type") == "SYNC" or (not event.get("type") and kind.endswith("List")):
        items = [_item(each) for each in event.get("items") or ()]
        return Listing(kind.removesuffix("List"), event.get("apiVersion") or "", iter((items,)))
    written = event.get("object")
    return _event(event.get("type"), msgspec.convert(written, _Head), written)


def _event(kind_of_event: Any, head: _Head, written: Any, line: bytes = b"") -> WatchEvent:
    if kind_of_event not in CHANGES and kind_of_event not in (DELETED, BOOKMARK):
        raise UnusableEventError(f"an event of type {kind_of_event!r} contains no change of an object")
    if not head.kind:
        raise UnusableEventError("the object of the event has no kind")
    return WatchEvent(kind_of_event, head.kind, head.api_version, _of_head(head, written), line)


def _of_pages(sync: Sync) -> Iterator[list[Item]]:
    for page in sync.pages:
        try:
            if isinstance(page, bytes):
                items = [_raw_item(raw) for raw in _PAGE.decode(page).items or ()]
            else:
                items = [_item(each) for each in page.get("items") or ()]
        except (msgspec.MsgspecError, RecursionError, TypeError, AttributeError, UnicodeDecodeError) as trouble:
            raise UnusableEventError(f"a list page of kind {sync.kind} cannot be read: {trouble}") from trouble
        del page  # it must not stay in memory while the next one is read
        yield items


def _raw_item(raw: msgspec.Raw) -> Item:
    return _of_head(_HEAD.decode(raw), raw)


def _item(written: Mapping[str, Any]) -> Item:
    return _of_head(msgspec.convert(written, _Head), written)


def _of_head(head: _Head, written: Any) -> Item:
    return _item_of(head.metadata, written)


def _item_of(meta: _Meta | WatchedMeta, written: Any) -> Item:
    return Item(written, object_key(meta.namespace, meta.name), meta.uid, version_number(meta.resource_version))


def version_number(resource_version: str) -> int | None:
    """Versions of a kind are increasing integers (KEP-5504). None for another form, which cannot be compared."""
    is_number = resource_version.isascii() and resource_version.isdecimal() and len(resource_version) <= _LONGEST
    return int(resource_version) if is_number and resource_version[0] != "0" else None


_LONGEST: Final = 39  # the digits of 128 bits
