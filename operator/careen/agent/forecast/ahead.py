"""Starts the process for the next forecast early: loading Python and numpy takes longer than forecasting a drain in a
small cluster, and every waiting node would wait for it.

There is at most one such process, only on a node that may take its claim within seconds (`Decision.starts_soon`). If it
fails, the forecast starts another.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable

from careen.cluster.wire.transport import Clock
from careen.host.commands import kill_group

# How long no process is started ahead after one that could not start, or ended before its request. The node probably
# has too little memory.
AGAIN_SECONDS = 60.0


class Ahead:
    """At most one child process, ready for its request."""

    def __init__(self, start: Callable[[], Awaitable[Process | None]], clock: Clock) -> None:
        """`start` returns None if the process cannot start."""
        self._start = start
        self._clock = clock
        self._process: Process | None = None
        self._not_before = 0.0
        self._one_at_a_time = asyncio.Lock()

    async def keep(self, *, is_wanted: bool) -> None:
        """Starts the process unless one runs, or ends it."""
        async with self._one_at_a_time:
            self._forget_the_dead()
            if not is_wanted:
                await self._end()
            elif self._process is None and self._clock.monotonic() >= self._not_before:
                self._process = await self._start()
                self._not_before = 0.0 if self._process else self._clock.monotonic() + AGAIN_SECONDS

    async def take(self) -> Process | None:
        """The process, for one request; None if none is alive."""
        async with self._one_at_a_time:
            self._forget_the_dead()
            process, self._process = self._process, None
            return process

    def _forget_the_dead(self) -> None:
        if self._process is not None and self._process.returncode is not None:
            self._process, self._not_before = None, self._clock.monotonic() + AGAIN_SECONDS

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await kill_group(process)
