"""Lists one kind once, then watches it from the list's resourceVersion, and passes everything to the sink.

After any failure the sink still gets the state of a fresh list. After a broken watch the next one starts at the last
resourceVersion, and the server repeats the missed events. It lists again if the server no longer has them (410), or if
several watches in a row sent no usable line. Pauses double with each failure in a row, up to half a minute, with
jitter, so that clients do not return together.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from careen.cluster.reflector.initial_events import QUERY, InitialEvents
from careen.cluster.reflector.streams import Streams
from careen.cluster.reflector.watch_lines import Said, is_further, lines_of, read_change, read_line
from careen.cluster.wire.answers import asked_for
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import (
    ClusterError,
    Expired,
    NotFound,
    NotSent,
    NotServed,
    Refused,
    ServerFailed,
    UnreadableAnswer,
)
from careen.cluster.wire.transport import Request
from scheduler_core.cache.events import WatchEvent, read_event
from scheduler_core.values import Value

WATCH_SECONDS: Final = 300  # at least; client-go asks for 5 to 10 minutes as well
SILENCE_SECONDS: Final = 90.0  # an API server sends a bookmark about once a minute
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
NOT_SERVED_PAUSE_SECONDS: Final = 300.0  # a kind that is not installed may be installed later
MOST_USELESS_WATCHES: Final = 3
_NOT_UNDERSTOOD: Final = (400, 422)


class WatchedKind(Value, kw_only=True):
    """A kind of object and the paths of its lists, for example for several versions. The first that the server serves
    is used. `selects`: a field selector; an object that no longer has such fields comes as deleted."""

    kind: str
    paths: tuple[str, ...]
    selects: str = ""

    @property
    def query(self) -> Mapping[str, str]:
        return {"fieldSelector": self.selects} if self.selects else {}


class Sink(Protocol):
    """Receives lists and events. Raises ValueError for a line or a page that it cannot use."""

    async def listed(self, kind: str, pages: AsyncIterator[bytes]) -> None:
        """Takes all objects of a kind. If `pages` raises an error, the list is incomplete."""
        ...

    async def changed(self, kind: str, event: WatchEvent) -> None:
        """Takes one event: an object was added, changed or deleted."""
        ...

    def heard(self, kind: str) -> None:
        """After each complete list and each usable line."""
        ...

    def troubled(self, kind: str, error: ClusterError) -> None:
        """The kind cannot be watched at the moment. The reflector tries again."""
        ...


class Reflector:
    """Lists and watches one kind of object for ever."""

    def __init__(
        self,
        source: WatchedKind,
        api: ClusterApi,
        streams: Streams,
        sink: Sink,
        *,
        chance: Callable[[], float],
        by_watch: bool = False,
    ) -> None:
        """`by_watch`: lists come as the beginning of a watch, where the server can do that. After a failure, and for a
        server that refuses it, they do not."""
        self._source = source
        self._api = api
        self._streams = streams
        self._sink = sink
        self._chance = chance
        self._failures = 0
        self._by_watch = by_watch

    async def run(self) -> None:
        """Until the task is cancelled."""
        while True:
            try:
                path, position = await self._listed_by_watch() if self._lists_by_watch else await self._list()
            except _NotServedError:
                await self._sink.listed(self._source.kind, _nothing())
                await self._api.clock.sleep(NOT_SERVED_PAUSE_SECONDS * (0.5 + self._chance()))
            except ClusterError as error:
                await self._pause(error)
            else:
                await self._follow(path, position)

    # ---- the list ----

    async def _list(self) -> tuple[str, str]:
        """The first path that the server serves, and the list's resourceVersion."""
        for path in self._source.paths:
            pages = _Pages(self._api.pages(path, query=self._source.query))
            try:
                await pages.begin()
            except (NotFound, NotServed):
                continue
            try:
                await self._sink.listed(self._source.kind, pages.all())
            except ValueError as error:
                raise UnreadableAnswer(f"GET {path}: {error}") from error
            self._sink.heard(self._source.kind)
            return path, pages.version
        raise _NotServedError

    @property
    def _lists_by_watch(self) -> bool:
        return self._by_watch and not self._failures

    async def _listed_by_watch(self) -> tuple[str, str]:
        """Returns when the watch that began with the list has ended."""
        for path in self._source.paths:
            what, lines = f"GET {path}?watch", self.lines(path, "", QUERY)
            try:
                initial = InitialEvents(lines, asked_for(path), what)
                try:
                    await initial.begin()
                except (NotFound, NotServed):
                    continue
                except Refused as refusal:
                    if refusal.status not in _NOT_UNDERSTOOD:
                        raise
                    self._by_watch = False
                    return await self._list()
                try:
                    await self._sink.listed(self._source.kind, initial.pages())
                    for line in initial.late:
                        await self._sink.changed(self._source.kind, _event(line))
                except ValueError as error:
                    raise UnreadableAnswer(f"{what}: {error}") from error
                self._sink.heard(self._source.kind)
                position = initial.version
                with suppress(ClusterError):  # the next watch begins where this one ended
                    async for reached in self.take(lines, path, position):
                        position = reached
                return path, position
            finally:
                await lines.aclose()
        raise _NotServedError

    # ---- watches ----

    async def _follow(self, path: str, position: str) -> None:
        """Returns when the kind has to be listed again."""
        useless = 0
        while useless < MOST_USELESS_WATCHES:
            watch = _Watch(path, position, self)
            began, trouble = self._api.clock.monotonic(), None
            try:
                await watch.run()
            except (Expired, NotFound, NotServed):
                if not watch.has_spoken or self._api.clock.monotonic() - began < 1.0:
                    await self._pause(None)  # a server that drops events at once must not cause one list after another
                return
            except ClusterError as error:
                trouble = error
            if watch.position != position or (watch.has_spoken and self._api.clock.monotonic() - began >= 1.0):
                useless = self._failures = 0
            elif not isinstance(trouble, NotSent):
                useless += 1
            position = watch.position
            if trouble is not None or not watch.has_spoken:
                await self._pause(trouble)

    async def _pause(self, error: ClusterError | None) -> None:
        if error is not None:
            self._sink.troubled(self._source.kind, error)
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures, 10))
        self._failures += 1
        asked = error.retry_after_seconds or 0.0 if isinstance(error, Refused) else 0.0
        await self._api.clock.sleep(asked + longest * (0.5 + 0.5 * self._chance()))

    def request(self, path: str, position: str, more: Mapping[str, str] | None = None) -> Request:
        """The request of a watch. Its timeout is random, so that watches that began together end apart."""
        return Request(
            method="GET",
            path=path,
            query={
                **self._source.query,
                **(more or {}),
                "watch": "true",
                "resourceVersion": position,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(int(WATCH_SECONDS * (1.0 + self._chance()))),
            },
            timeout_seconds=SILENCE_SECONDS,
        )

    def lines(self, path: str, position: str, more: Mapping[str, str] | None = None) -> AsyncGenerator[bytes, None]:
        """Of a new watch."""
        return lines_of(self._streams.chunks(self.request(path, position, more)), f"GET {path}?watch")

    async def take(self, lines: AsyncGenerator[bytes, None], path: str, position: str) -> AsyncGenerator[str, None]:
        """Passes each change of one watch to the sink; after each line yields the resourceVersion at which the next
        watch would continue."""
        what = f"GET {path}?watch"
        asked = asked_for(path)
        async for line in lines:
            event = read_change(line, asked.kind, asked.api_version)
            if event is not None:
                version = str(event.item.version)
            else:
                said = read_line(line, asked.kind, asked.api_version, what)
                if said.said is Said.TOO_OLD:
                    raise _gone(what, said.why)
                if said.said is Said.FAILED:
                    raise ServerFailed(what, status=500, reason="", message=said.why, retry_after_seconds=None)
                version = said.version or position
            try:
                if event is not None or said.said is Said.CHANGE:
                    await self._sink.changed(self._source.kind, event or _event(line))
            except ValueError as error:
                raise UnreadableAnswer(f"{what}: {error}") from error
            self._sink.heard(self._source.kind)
            if is_further(version, position):
                position = version
            yield position


class _Watch:
    """One watch: the resourceVersion that it has reached, and whether the server has sent a usable line."""

    def __init__(self, path: str, position: str, reflector: Reflector) -> None:
        self.position = position
        self.has_spoken = False
        self._path = path
        self._reflector = reflector

    async def run(self) -> None:
        lines = self._reflector.lines(self._path, self.position)
        taken = self._reflector.take(lines, self._path, self.position)
        try:
            async for self.position in taken:
                self.has_spoken = True
        finally:
            await taken.aclose()
            await lines.aclose()


def _event(line: bytes) -> WatchEvent:
    """Raises ValueError for a line that `read_line` calls a change, but that is none."""
    event = read_event(line)
    assert isinstance(event, WatchEvent)
    return event


class _NotServedError(Exception):
    """The server serves none of the kind's paths."""


def _gone(what: str, why: str) -> Expired:
    return Expired(what, status=410, reason="Expired", message=why, retry_after_seconds=None)


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


class _ListMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""


class _ListHead(msgspec.Struct, gc=False):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


class _Pages:
    """The pages of one list. `begin` requests the first, so that an error is raised before the sink gets any."""

    def __init__(self, pages: AsyncGenerator[bytes, None]) -> None:
        self._pages = pages
        self._first = b""
        self.version = ""

    async def begin(self) -> None:
        """Requests the first page. Raises the server's error."""
        self._first = await anext(self._pages)
        self.version = msgspec.json.decode(self._first, type=_ListHead).metadata.resource_version

    async def all(self) -> AsyncGenerator[bytes, None]:
        """The pages in order; all show the cluster at the first one's resourceVersion."""
        first, self._first = self._first, b""
        yield first
        del first
        async for page in self._pages:
            yield page
