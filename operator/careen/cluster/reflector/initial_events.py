"""A list that arrives as the beginning of a watch (`sendInitialEvents`): the server reads it from its memory, and the
watch goes on without another request.

Source: watchList of the reflector in client-go (tools/cache/reflector.go, v0.36).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from careen.cluster.reflector.watch_lines import Said, WatchLine, next_of, read_line
from careen.cluster.wire.answers import RequestedObject
from careen.cluster.wire.errors import Expired, ServerFailed, Unclear

QUERY: Final = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
_PAGE: Final = 500
_END: Final = "k8s.io/initial-events-end"


class _Meta(msgspec.Struct, gc=False):
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_EVENT: Final = msgspec.json.Decoder(_Event)
_BOOKMARK: Final = msgspec.json.Decoder(_Bookmark)


class InitialEvents:
    """`version` and `late` are there when the pages were read to their end. `late`: what happened meanwhile, after the
    pages."""

    def __init__(self, lines: AsyncGenerator[bytes, None], asked: RequestedObject, what: str) -> None:
        self._lines = lines
        self._asked = asked
        self._what = what
        self._first: bytes | None = None
        self.version = ""
        self.late: list[bytes] = []

    async def begin(self) -> None:
        """Reads the first line, so that a refusal is raised before the sink gets a page. Raises a ClusterError."""
        self._first = await next_of(self._lines)

    async def pages(self) -> AsyncGenerator[bytes, None]:
        """As those of a list. Raises a ClusterError if the watch ends before its list does."""
        items: list[bytes] = []
        line, self._first = self._first, None
        while line is not None:
            said = self._read(line)
            event = _EVENT.decode(line)
            if said.said is Said.BOOKMARK:
                if _END in (_BOOKMARK.decode(event.object).metadata.annotations or {}):
                    self.version = said.version or ""
                    yield self._page(items)
                    return
            elif event.type == "ADDED" and not self.late:
                items.append(bytes(event.object))
                if len(items) == _PAGE:
                    yield self._page(items)
                    items = []
            else:
                self.late.append(line)
            line = await next_of(self._lines)
        raise Unclear(f"{self._what}: the watch ended before its list did")

    def _read(self, line: bytes) -> WatchLine:
        said = read_line(line, self._asked.kind, self._asked.api_version, self._what)
        if said.said is Said.TOO_OLD:
            raise Expired(self._what, status=410, reason="Expired", message=said.why, retry_after_seconds=None)
        if said.said is Said.FAILED:
            raise ServerFailed(self._what, status=500, reason="", message=said.why, retry_after_seconds=None)
        return said

    def _page(self, items: list[bytes]) -> bytes:
        head = f'{{"kind":"{self._asked.kind}List","apiVersion":"{self._asked.api_version}","metadata":{{}},"items":['
        return head.encode() + b",".join(items) + b"]}"
