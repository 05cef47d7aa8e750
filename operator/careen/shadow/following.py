"""Follows the cluster and compares bindings, until a person stops the command or it reaches the limit of an option."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from careen.cluster.reflector.cluster_feed import ClusterFeed
from careen.cluster.wire.errors import ClusterError, Forbidden, Unauthorized
from careen.shadow.shadow import Shadow

LOOK_SECONDS = 0.2
# In this pause the feed handles all events that have arrived. So if comparisons are too slow, the number of waiting
# bindings grows, until the shadow reports further ones as `behind`.
_YIELD_SECONDS = 0.002


class Following:
    """Passes the cluster's events to a `Shadow`. Calls `on_step` between two comparisons."""

    def __init__(self, feed: ClusterFeed, shadow: Shadow, on_step: Callable[[], None]) -> None:
        self._feed = feed
        self._shadow = shadow
        self._on_step = on_step
        self._task: asyncio.Task[None] | None = None

    async def begin(self, is_given_up: Callable[[], bool]) -> None:
        """Waits until every kind has been listed. Raises `Forbidden` or `Unauthorized` if one may not be listed or
        watched: comparisons without it would be wrong."""
        self._task = asyncio.create_task(self._feed.run())
        complete = asyncio.create_task(self._feed.complete())
        try:
            while not (complete.done() or is_given_up()):
                await asyncio.wait({complete, self._task}, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                self._on_step()
                self._raise_what_no_time_mends()
        finally:
            complete.cancel()

    async def go_on(self, is_enough: Callable[[], bool]) -> None:
        """Compares until `is_enough`, then also the bindings that still wait."""
        while not is_enough():
            if not await self._compare():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._feed.news(), LOOK_SECONDS)
            self._on_step()
            self._raise_what_no_time_mends()
        while await self._compare(at_last=True):
            self._on_step()

    async def end(self) -> None:
        """Stops following."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError, ClusterError):
                await self._task

    async def _compare(self, *, at_last: bool = False) -> bool:
        async with self._feed.one_at_a_time:
            found = self._shadow.compare(at_last=at_last)
        await asyncio.sleep(_YIELD_SECONDS if found else 0)
        return found

    def _raise_what_no_time_mends(self) -> None:
        if self._task is not None and self._task.done():
            self._task.result()
        for kind in self._feed.missing:
            if isinstance(error := self._feed.troubles.get(kind), Forbidden | Unauthorized):
                raise error
