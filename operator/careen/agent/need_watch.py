"""The need, over time: files are read in each turn. Commands run once per --period, or once a minute if that is shorter
and the last answer was not "no".

A slow check does not block the loop: until it ends, its previous answer counts. Each check has a deadline.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from careen.cluster.wire.transport import Clock
from careen.core.facts.observation import Need, NeedAnswer
from careen.host.probes.said import together

FILE_SECONDS = 2.0
"""How often the sentinel file is read between two turns. The soft taint must be on the Node within ten seconds after
the file appears."""

# During a claim or a drain, an hour-old "yes" is not sufficient to drain a node.
_COMMAND_AGE_WHEN_NEEDED_SECONDS = 60.0


# A file and most commands answer within milliseconds. A turn with an old answer waits no longer for a new one.
_WAIT_SECONDS = 2.0

Look = Callable[[], Awaitable[Need]]


class NeedWatch:
    """The combined answer of all probes."""

    def __init__(
        self, files: Look | None, clock: Clock, *, commands: Look | None = None, period_seconds: Callable[[], float]
    ) -> None:
        """`files` reads files and is called by each `read`; `commands` runs commands, once per period. One of them may
        be None."""
        always = [_Watched(files, clock, good_for=lambda _: 0.0)] if files else []
        seldom = (
            [_Watched(commands, clock, good_for=lambda last: _good_for(last, period_seconds()))] if commands else []
        )
        self._clock = clock
        self._seldom = seldom
        self._watched = (*seldom, *always)
        self._told: Need | None = None

    async def read(self) -> Need:
        """Asks a source again only if its last answer is too old."""
        said = [await each.read() for each in self._watched]
        self._told = together(said) if len(said) > 1 else said[0]
        return self._told

    def forget(self) -> None:
        """Makes the next `read` run the commands, however new their answer is. The old answer counts meanwhile."""
        for each in self._watched:
            each.forget()

    @property
    def is_looking(self) -> bool:
        """Whether a check is under way."""
        return any(each.is_looking for each in self._watched)

    @property
    def now(self) -> float:
        """By the clock of `next_question`."""
        return self._clock.monotonic()

    @property
    def next_question(self) -> float | None:
        """When a command is due, by the monotonic clock; None without commands."""
        return min((each.due for each in self._seldom), default=None)

    async def has_changed(self) -> bool:
        """Whether the answer differs from that of the last `read`."""
        before = self._told
        return before is not None and (await self.read()).answer is not before.answer


def _good_for(last: Need | None, period_seconds: float) -> float:
    if last is not None and last.answer is NeedAnswer.NO:
        return period_seconds
    return min(period_seconds, _COMMAND_AGE_WHEN_NEEDED_SECONDS)


class _Watched:
    """One source, all files or all commands: its last answer, and when it was asked."""

    def __init__(self, look: Look, clock: Clock, *, good_for: Callable[[Need | None], float]) -> None:
        self._ask = look
        self._clock = clock
        self._good_for = good_for
        self._last: Need | None = None
        self._asked_at = -math.inf
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
        assert self._last is not None, "`read` has waited for the first answer, so `_last` is not None"
        return self._last

    def forget(self) -> None:
        """The last answer is too old from now on."""
        self._asked_at = -math.inf

    @property
    def is_looking(self) -> bool:
        return self._under_way is not None and not self._under_way.done()

    @property
    def due(self) -> float:
        return self._asked_at + self._good_for(self._last)

    def _end_look(self) -> None:
        """Forgets a finished check and raises its error, so that `read` can begin a new one."""
        look = self._under_way
        if look is not None and look.done():
            self._under_way = None
            look.result()

    async def _look(self) -> None:
        # The age counts from the question, or a slow command's answer would be valid for longer.
        asked_at = self._clock.monotonic()
        self._last = await self._ask()
        self._asked_at = asked_at
