"""The child process of the next forecast, started before there is an order: to load Python and numpy takes longer than
the forecast of a small cluster, and at a turn everybody waits for it.

There is one at most, and only on a node whose turn may come within seconds (`Decision.expects_turn`). Whatever happens
to it, the forecast starts a process of its own as if there had been none."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable

from careen.cluster.wire.transport import Clock
from careen.host.commands import kill_group

AGAIN_SECONDS = 60.0  # after one that ended without an order: the node has no memory for it


class Ahead:
    """Holds the process that waits, if there is one."""

    def __init__(self, start: Callable[[], Awaitable[Process | None]], clock: Clock) -> None:
        """`start` gives None where none can be started."""
        self._start = start
        self._clock = clock
        self._process: Process | None = None
        self._not_before = 0.0
        self._one_at_a_time = asyncio.Lock()

    async def keep(self, *, is_wanted: bool) -> None:
        """Starts the process where one is wanted, ends it where none is any more."""
        async with self._one_at_a_time:
            self._forget_the_dead()
            if not is_wanted:
                await self._end()
            elif self._process is None and self._clock.monotonic() >= self._not_before:
                self._process = await self._start()
                self._not_before = 0.0 if self._process else self._clock.monotonic() + AGAIN_SECONDS

    async def take(self) -> Process | None:
        """The process, for one order; None where there is none that lives."""
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
