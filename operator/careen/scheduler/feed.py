"""Gives lists and watch events of all kinds to the machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from careen.cluster.reflector.cluster_feed import ArrivingPages
from careen.cluster.reflector.reflector import Reflector, WatchedKind
from careen.cluster.reflector.sources import sources
from careen.cluster.reflector.streams import Streams
from careen.cluster.reflector.watch_lines import next_of
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from careen.scheduler.pump import Pump
from scheduler_core.cache.events import Sync, WatchEvent

_UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


def watched() -> tuple[WatchedKind, ...]:
    """What kube-scheduler watches. Finished pods need no room, and there may be many."""
    return tuple(
        WatchedKind(kind=each.kind, paths=each.paths, selects=_UNFINISHED) if each.kind == "Pod" else each
        for each in sources()
    )


class SchedulerFeed:
    """The sink of one reflector for each kind."""

    def __init__(
        self,
        api: ClusterApi,
        streams: Streams,
        sources: Sequence[WatchedKind],
        *,
        pump: Pump,
        chance: Callable[[], float],
    ) -> None:
        self.troubles: dict[str, ClusterError] = {}
        """The kinds that cannot be watched at the moment, each with its error."""
        self._pump = pump
        self.missing = {source.kind for source in sources}
        self._reflectors = [Reflector(source, api, streams, self, chance=chance, by_watch=True) for source in sources]

    async def run(self) -> None:
        """Until the task is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())

    # ---- calls of the reflectors ----

    async def listed(self, kind: str, pages: AsyncIterator[bytes]) -> None:
        """Returns when the list is applied; until then the reflector does not watch. A page is requested while the one
        before is applied."""
        arriving = ArrivingPages()
        self._pump.take(Sync(kind, arriving, arriving.is_ready))
        try:
            while (page := await next_of(pages)) is not None:
                arriving.put(page)
                del page
                self._pump.wake()
                await self._pump.taken(kind, arriving.is_ready)
        except ClusterError as error:
            arriving.fail(str(error))
            raise
        finally:
            arriving.end()
            self._pump.wake()
            await self._pump.listed(kind)
        if not arriving.is_read:
            raise ValueError(f"a page of the list of kind {kind} cannot be read")
        self.missing.discard(kind)
        self.heard(kind)

    async def changed(self, kind: str, event: WatchEvent) -> None:
        del kind
        self._pump.take(event)

    def heard(self, kind: str) -> None:
        self.troubles.pop(kind, None)

    def troubled(self, kind: str, error: ClusterError) -> None:
        self.troubles[kind] = error
