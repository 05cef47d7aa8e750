"""Fills one cache with all kinds of objects: each has a reflector, which applies its events in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Protocol

from careen.cluster.reflector.reflector import Reflector, WatchedKind
from careen.cluster.reflector.streams import Streams
from careen.cluster.reflector.watch_lines import next_of
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from scheduler_core.cache.changes import Changes
from scheduler_core.cache.cluster_cache import ClusterCache
from scheduler_core.cache.events import Sync, UnusableEventError, WatchEvent


class Audience(Protocol):
    """What the feed calls when the cache changes."""

    def before(self, kind: str, line: bytes) -> None:
        """Before an event of a watch changes the cache."""
        ...

    def after(self, kind: str, *, has_changed: bool) -> None:
        """After the event."""
        ...

    def before_list(self, kind: str) -> None:
        """Before a list replaces all objects of a kind. What happened since the last watch is unknown."""
        ...


class ClusterFeed:
    """Keeps `cache` up to date."""

    def __init__(
        self,
        api: ClusterApi,
        streams: Streams,
        sources: Sequence[WatchedKind],
        *,
        cache: ClusterCache,
        audience: Audience,
        chance: Callable[[], float],
    ) -> None:
        self.cache = cache
        self.troubles: dict[str, ClusterError] = {}
        """The kinds that cannot be watched at the moment, each with its error."""
        self.events = 0
        self.bytes = 0
        self.lists = 0
        self._audience = audience
        self.one_at_a_time = asyncio.Lock()
        """The lock of the cache: the feed holds it for changes, and whoever reads the cache must hold it too."""
        self._missing = {source.kind for source in sources}
        self._is_complete = asyncio.Event()
        self._has_news = asyncio.Event()
        self._reflectors = [Reflector(source, api, streams, self, chance=chance) for source in sources]

    async def run(self) -> None:
        """Watches every kind until the task is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())

    @property
    def missing(self) -> frozenset[str]:
        """The kinds that have not been listed yet."""
        return frozenset(self._missing)

    async def complete(self) -> None:
        """Waits until every kind has been listed."""
        await self._is_complete.wait()

    async def news(self) -> None:
        """Waits for the next list, event or error."""
        self._has_news.clear()
        await self._has_news.wait()

    # ---- calls of the reflectors ----

    async def listed(self, kind: str, pages: AsyncIterator[bytes]) -> None:
        """Replaces all objects of a kind, in slices: between two of them, events of other kinds are applied, and the
        cache is read. Until the end it is a mixture of old and new objects of this kind."""
        arriving = ArrivingPages()
        async with self.one_at_a_time:
            self._audience.before_list(kind)
            slices = self.cache.relist(Sync(kind, arriving, arriving.is_ready))
        while (page := await next_of(pages)) is not None:
            arriving.put(page)
            del page
            await self._apply(slices, arriving)
        arriving.end()
        await self._apply(slices, arriving)
        self.lists += 1
        self._missing.discard(kind)
        if not self._missing and not self._is_complete.is_set():
            self._is_complete.set()
        self.heard(kind)

    async def _apply(self, slices: Iterator[Changes], arriving: ArrivingPages) -> None:
        """As far as the pages have arrived."""
        while arriving.is_ready():
            async with self.one_at_a_time:
                if next(slices, None) is None:
                    return
            await asyncio.sleep(0)

    async def changed(self, kind: str, event: WatchEvent) -> None:
        """Applies one event of a watch."""
        async with self.one_at_a_time:
            self._audience.before(kind, event.line)
            self._audience.after(kind, has_changed=bool(self.cache.apply_read(event)))
        self.events += 1
        self.bytes += len(event.line)

    def heard(self, kind: str) -> None:
        """The kind is received without an error."""
        self.troubles.pop(kind, None)
        self._has_news.set()

    def troubled(self, kind: str, error: ClusterError) -> None:
        """Remembers why the kind cannot be watched."""
        self.troubles[kind] = error
        self._has_news.set()


class ArrivingPages:
    """The pages of one list, of which at most one waits to be applied."""

    def __init__(self) -> None:
        self._page: bytes | None = None
        self._is_over = False
        self._problem = ""
        self.is_read = False
        """To the end."""

    def is_ready(self) -> bool:
        return self._page is not None or self._is_over

    def put(self, page: bytes) -> None:
        self._page = page

    def end(self) -> None:
        self._is_over = True

    def fail(self, problem: str) -> None:
        """The other pages cannot be had."""
        self._problem = problem

    def __iter__(self) -> Iterator[bytes]:
        while self._page is not None:
            yield self._taken()
        assert self._is_over, "a page was read before it had arrived"
        if self._problem:
            raise UnusableEventError(self._problem)
        self.is_read = True

    def _taken(self) -> bytes:
        page, self._page = self._page, None
        assert page is not None
        return page
