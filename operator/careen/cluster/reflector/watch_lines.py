"""Splits the response to a watch into lines, and finds out what each means."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from enum import StrEnum
from typing import Final

import msgspec

from careen.cluster.wire.errors import UnreadableAnswer
from scheduler_core.cache.events import BOOKMARK, UnusableEventError, WatchEvent, read_event
from scheduler_core.values import Value

# etcd takes no object above 1.5 MiB; as JSON, with its managed fields, an object may be several times longer.
_LONGEST_LINE: Final = 32 * 2**20


class Said(StrEnum):
    """What a line of a watch reports."""

    CHANGE = "change"
    BOOKMARK = "bookmark"
    TOO_OLD = "too-old"  # 410: only a new list helps
    FAILED = "failed"  # the server ends the watch with an error


class WatchLine(Value, kw_only=True):
    """`version` is where the next watch would continue; None if the line has no resourceVersion."""

    said: Said
    version: str | None = None
    why: str = ""


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""


class _Object(msgspec.Struct, gc=False, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    code: int = 0
    reason: str = ""
    message: str = ""


class _Event(msgspec.Struct, gc=False):
    type: str
    object: _Object


_EVENT: Final = msgspec.json.Decoder(_Event)
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
_GONE: Final = 410


async def lines_of(chunks: AsyncIterator[bytes], what: str) -> AsyncGenerator[bytes, None]:
    """The complete lines. An incomplete last one is dropped: the next watch sends its event again. Raises
    UnreadableAnswer for a line that is too long to come from an API server."""
    rest: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *whole, last = chunk.split(b"\n")
        for part in whole:
            rest.append(part)
            if line := b"".join(rest).strip():
                yield line
            rest, size = [], 0
        rest.append(last)
        size += len(last)
        if size > _LONGEST_LINE:
            raise UnreadableAnswer(f"{what}: the answer has a line of more than {_LONGEST_LINE // 2**20} MiB")


async def next_of(stream: AsyncIterator[bytes]) -> bytes | None:
    """None at the end. Not `anext(stream, None)`: Python 3.11.7 has crashed in it while its loop was closed."""
    try:
        return await stream.__anext__()
    except StopAsyncIteration:
        return None


def read_change(line: bytes, kind: str, api_version: str) -> WatchEvent | None:
    """The event, if the line plainly has a change of such an object; of any other line `read_line` says what it is."""
    try:
        event = read_event(line)
    except UnusableEventError:
        return None
    if not isinstance(event, WatchEvent) or event.type == BOOKMARK or event.item.version is None:
        return None
    return event if event.kind == kind and event.api_version in ("", api_version) else None


def read_line(line: bytes, kind: str, api_version: str, what: str) -> WatchLine:
    """Raises UnreadableAnswer if the line has no usable event, or one of another kind."""
    try:
        event = _EVENT.decode(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableAnswer(f"{what}: the answer is not what the API promises: {error}") from error
    if event.type == "ERROR":
        return _error(event.object)
    if event.object.kind != kind or event.object.api_version not in ("", api_version):
        raise UnreadableAnswer(
            f"{what}: the answer is about a {event.object.kind or 'nameless kind'}, not a {kind} of {api_version}"
        )
    version = event.object.metadata.resource_version
    if not version or (event.type != "BOOKMARK" and event.type not in _CHANGES):
        raise UnreadableAnswer(
            f"{what}: the answer has an event that careen cannot use: type {event.type!r}, resourceVersion {version!r}"
        )
    return WatchLine(said=Said.BOOKMARK if event.type == "BOOKMARK" else Said.CHANGE, version=version)


def _error(status: _Object) -> WatchLine:
    is_too_old = status.code == _GONE or status.reason in ("Expired", "Gone")
    why = status.message or status.reason or f"code {status.code}"
    return WatchLine(said=Said.TOO_OLD if is_too_old else Said.FAILED, why=why)


def is_further(version: str, than: str) -> bool:
    """At least as new as `than`. True if one is not a number, because they cannot be compared then."""
    if not (version.isascii() and version.isdecimal() and than.isascii() and than.isdecimal()):
        return True
    return (len(version), version) >= (len(than), than)
