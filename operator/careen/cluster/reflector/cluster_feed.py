"""All kinds together: one cache that a reflector for each kind feeds, in the order in which the events come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Protocol

from careen.cluster.reflector.reflector import Reflector, WatchedKind
from careen.cluster.reflector.streams import Streams
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from scheduler_core.cache.cluster_cache import ClusterCache
from scheduler_core.cache.events import Sync


class Audience(Protocol):
    """Hears of each event right before the cache takes it in, and of each list."""

    def before(self, kind: str, line: bytes) -> None:
        """An event of a watch is about to change the cache."""
        ...

    def after(self, kind: str, *, has_changed: bool) -> None:
        """The cache has taken it in."""
        ...

    def before_list(self, kind: str) -> None:
        """A list is about to replace everything of a kind: what happened to it in between is not known."""
        ...


class ClusterFeed:
    """Keeps `cache` as the API server has the cluster."""

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
        """By kind, what keeps it from being followed at the moment."""
        self.events = 0
        self.bytes = 0
        self.lists = 0
        self._audience = audience
        self.one_at_a_time = asyncio.Lock()
        """Held while the cache takes something in; whoever works on what it gave holds it as well."""
        self._missing = {source.kind for source in sources}
        self._is_complete = asyncio.Event()
        self._has_news = asyncio.Event()
        self._reflectors = [Reflector(source, api, streams, self, chance=chance) for source in sources]

    async def run(self) -> None:
        """Follows every kind until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())

    @property
    def missing(self) -> frozenset[str]:
        """The kinds that have not been listed yet."""
        return frozenset(self._missing)

    async def complete(self) -> None:
        """Returns when every kind has been listed once."""
        await self._is_complete.wait()

    async def news(self) -> None:
        """Returns after the next event, list or trouble."""
        self._has_news.clear()
        await self._has_news.wait()

    # ---- what reflectors say ----

    async def listed(self, kind: str, pages: AsyncIterator[bytes]) -> None:
        """See `Sink`. Pages are asked for while the cache, in a thread, takes in the one before: no two are in
        memory for long."""
        async with self.one_at_a_time:
            self._audience.before_list(kind)
            loop = asyncio.get_running_loop()
            await asyncio.to_thread(self.cache.apply, Sync(kind, _from(pages, loop)))
        self.lists += 1
        self._missing.discard(kind)
        if not self._missing and not self._is_complete.is_set():
            self._is_complete.set()
        self.heard(kind)

    async def changed(self, kind: str, line: bytes) -> None:
        """See `Sink`."""
        async with self.one_at_a_time:
            self._audience.before(kind, line)
            self._audience.after(kind, has_changed=self.cache.apply(line))
        self.events += 1
        self.bytes += len(line)

    def heard(self, kind: str) -> None:
        """See `Sink`."""
        self.troubles.pop(kind, None)
        self._has_news.set()

    def troubled(self, kind: str, error: ClusterError) -> None:
        """See `Sink`."""
        self.troubles[kind] = error
        self._has_news.set()


def _from(pages: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    """The same pages, for a thread."""
    while (page := asyncio.run_coroutine_threadsafe(_next(pages), loop).result()) is not None:
        yield page


async def _next(pages: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pages, None)
