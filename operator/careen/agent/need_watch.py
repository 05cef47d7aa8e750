"""The host's need, asked no more often than it is worth: a file whenever somebody wants to know, a command once a period."""

from __future__ import annotations

from collections.abc import Callable

from careen.cluster.transport import Clock
from careen.core.observation import Need, NeedAnswer
from careen.host.node_host import Host

FILE_SECONDS = 5.0
"""How often the loop looks at the sentinel file between turns: the taint must follow within ten seconds."""

# While something is going on (a claim, a drain) a "yes" of an hour ago is not good enough to drain a node on.
_COMMAND_AGE_WHEN_NEEDED_SECONDS = 60.0


class NeedWatch:
    """Remembers the last answer and when it was given."""

    def __init__(self, host: Host, clock: Clock, *, is_command: bool, period_seconds: Callable[[], float]) -> None:
        self._host = host
        self._clock = clock
        self._is_command = is_command
        self._period_seconds = period_seconds
        self._last: Need | None = None
        self._asked_at = 0.0

    async def read(self) -> Need:
        """The need: from the sentinel, or the last answer while it is fresh enough."""
        if self._last is None or self._clock.monotonic() - self._asked_at >= self._good_for():
            # The age counts from the question, so a slow command is not believed for longer.
            self._asked_at = self._clock.monotonic()
            self._last = await self._host.read_need()
        return self._last

    async def has_changed(self) -> bool:
        """Whether the sentinel now says something else than the last time it was read."""
        before = self._last
        return before is not None and (await self.read()).answer is not before.answer

    def _good_for(self) -> float:
        if not self._is_command:
            return 0.0
        if self._last is not None and self._last.answer is NeedAnswer.NO:
            return self._period_seconds()
        return min(self._period_seconds(), _COMMAND_AGE_WHEN_NEEDED_SECONDS)
