"""The host's need, asked no more often than it is worth: a file whenever somebody wants to know, a command once
a period.

A slow look holds up nobody: the last answer stands until the look has ended, which it does by its own deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from careen.cluster.wire.transport import Clock
from careen.core.facts.observation import Need, NeedAnswer
from careen.host.node_host import Host

FILE_SECONDS = 2.0
"""How often the loop looks at the sentinel file between turns: the taint must follow within ten seconds."""

# While something is going on (a claim, a drain) a "yes" of an hour ago is not good enough to drain a node on.
_COMMAND_AGE_WHEN_NEEDED_SECONDS = 60.0


# A file and most commands answer within milliseconds. With an old answer a turn waits no longer for a new one.
_WAIT_SECONDS = 2.0


class NeedWatch:
    """Remembers the last answer and when it was given."""

    def __init__(self, host: Host, clock: Clock, *, is_command: bool, period_seconds: Callable[[], float]) -> None:
        self._host = host
        self._clock = clock
        self._is_command = is_command
        self._period_seconds = period_seconds
        self._last: Need | None = None
        self._told: Need | None = None
        self._asked_at = 0.0
        self._began_at = 0.0
        self._under_way: asyncio.Task[None] | None = None

    async def read(self) -> Need:
        """The need; the last answer while it is fresh enough, or a new look is under way."""
        self._told = await self._read()
        return self._told

    async def has_changed(self) -> bool:
        """Whether the sentinel now says something else than what anybody was told last."""
        before = self._told
        return before is not None and (await self.read()).answer is not before.answer

    async def _read(self) -> Need:
        self._end_look()
        if self._last is None or self._clock.monotonic() - self._asked_at >= self._good_for():
            if self._under_way is None:
                self._began_at, self._under_way = self._clock.monotonic(), asyncio.ensure_future(self._look())
            left = None if self._last is None else max(0.0, self._began_at + _WAIT_SECONDS - self._clock.monotonic())
            await asyncio.wait({self._under_way}, timeout=left)
            self._end_look()
        assert self._last is not None, "the first look is waited for"
        return self._last

    def _end_look(self) -> None:
        """A look that ended is over, and what broke it is told to whoever asks next."""
        look = self._under_way
        if look is not None and look.done():
            self._under_way = None
            look.result()

    async def _look(self) -> None:
        # The age counts from the question, so a slow command is not believed for longer.
        asked_at = self._clock.monotonic()
        self._last = await self._host.read_need()
        self._asked_at = asked_at

    def _good_for(self) -> float:
        if not self._is_command:
            return 0.0
        if self._last is not None and self._last.answer is NeedAnswer.NO:
            return self._period_seconds()
        return min(self._period_seconds(), _COMMAND_AGE_WHEN_NEEDED_SECONDS)
