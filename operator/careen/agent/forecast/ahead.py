"""Starts the process for the next forecast early, before the agent requests the forecast. The process takes longer to
load Python and numpy than to forecast the drain in a small cluster. Without this early start, every node that waits for
its reboot would also wait for that loading.

There is at most one such process, and only on a node that may take its claim in the cluster's lock within seconds
(`Decision.starts_soon`). If the process fails, the forecast starts another process.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable

from careen.cluster.wire.transport import Clock
from careen.host.commands import kill_group

# How long the agent starts no process ahead after one that could not start, or that ended before it got a request. The
# node probably has too little memory for the process.
AGAIN_SECONDS = 60.0


class Ahead:
    """Keeps at most one child process ready, which waits for the request to compute a forecast."""

    def __init__(self, start: Callable[[], Awaitable[Process | None]], clock: Clock) -> None:
        """`start` is a function that starts a forecast process. `start` returns the process, or None if the process
        cannot start."""
        self._start = start
        self._clock = clock
        self._process: Process | None = None
        self._not_before = 0.0
        self._one_at_a_time = asyncio.Lock()

    async def keep(self, *, is_wanted: bool) -> None:
        """Starts the forecast process if `is_wanted` is true and no such process runs. Ends the process if `is_wanted`
        is false."""
        async with self._one_at_a_time:
            self._forget_the_dead()
            if not is_wanted:
                await self._end()
            elif self._process is None and self._clock.monotonic() >= self._not_before:
                self._process = await self._start()
                self._not_before = 0.0 if self._process else self._clock.monotonic() + AGAIN_SECONDS

    async def take(self) -> Process | None:
        """Returns the waiting forecast process, to be used for one request. Returns None if no process is alive."""
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
