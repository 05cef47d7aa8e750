"""The host's need, asked no more often than it is worth: files whenever somebody wants to know, commands once
a period.

A slow look holds up nobody: the last answer stands until the look has ended, which it does by its own deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from careen.cluster.wire.transport import Clock
from careen.core.facts.observation import Need, NeedAnswer
from careen.host.probes.said import together

FILE_SECONDS = 2.0
"""How often the loop looks at the sentinel file between turns: the taint must follow within ten seconds."""

# While something is going on (a claim, a drain) a "yes" of an hour ago is not good enough to drain a node on.
_COMMAND_AGE_WHEN_NEEDED_SECONDS = 60.0


# A file and most commands answer within milliseconds. With an old answer a turn waits no longer for a new one.
_WAIT_SECONDS = 2.0

Look = Callable[[], Awaitable[Need]]


class NeedWatch:
    """What all sources say, and what was told last."""

    def __init__(
        self, files: Look | None, clock: Clock, *, commands: Look | None = None, period_seconds: Callable[[], float]
    ) -> None:
        """`files` costs little and is asked each time, `commands` once a period; one of them may be missing."""
        always = [_Watched(files, clock, good_for=lambda _: 0.0)] if files else []
        seldom = (
            [_Watched(commands, clock, good_for=lambda last: _good_for(last, period_seconds()))] if commands else []
        )
        self._watched = (*seldom, *always)
        self._told: Need | None = None

    async def read(self) -> Need:
        """The need; of each source the last answer while it is fresh enough, or a new look is under way."""
        said = [await each.read() for each in self._watched]
        self._told = together(said) if len(said) > 1 else said[0]
        return self._told

    async def has_changed(self) -> bool:
        """Whether the sources now say something else than what anybody was told last."""
        before = self._told
        return before is not None and (await self.read()).answer is not before.answer


def _good_for(last: Need | None, period_seconds: float) -> float:
    if last is not None and last.answer is NeedAnswer.NO:
        return period_seconds
    return min(period_seconds, _COMMAND_AGE_WHEN_NEEDED_SECONDS)


class _Watched:
    """One source: its last answer and when it was asked for."""

    def __init__(self, look: Look, clock: Clock, *, good_for: Callable[[Need | None], float]) -> None:
        self._ask = look
        self._clock = clock
        self._good_for = good_for
        self._last: Need | None = None
        self._asked_at = 0.0
        self._began_at = 0.0
        self._under_way: asyncio.Task[None] | None = None

    async def read(self) -> Need:
        self._end_look()
        if self._last is None or self._clock.monotonic() - self._asked_at >= self._good_for(self._last):
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
        self._last = await self._ask()
        self._asked_at = asked_at
