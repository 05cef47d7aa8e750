"""The self-test of the reboot method. Its result is kept, so a waiting node runs it only every few minutes."""

from __future__ import annotations

import asyncio
import logging

from careen.cluster.wire.transport import Clock
from careen.core.facts.observation import SelfTest
from careen.host.node_host import Host

_LOG = logging.getLogger("careen.self-test")

_GOOD_FOR_SECONDS = 300.0  # the longest age of a test that permits a claim
_FIRST_PAUSE_SECONDS = 15.0  # doubles while the test fails
_LONGEST_PAUSE_SECONDS = 600.0  # a repaired host is noticed within ten minutes


class SelfTests:
    """The last result, and when the next self-test is due. Logs findings when they change."""

    def __init__(self, host: Host, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._due = 0.0
        self._failures = 0
        self._told = SelfTest()
        self.last: SelfTest | None = None
        """None before the first self-test."""

    async def read(self) -> SelfTest:
        """Runs the self-test if the last result is too old."""
        async with self._one_at_a_time:
            if self.last is None or self._clock.monotonic() >= self._due:
                self._take(await self._host.test_reboot())
            assert self.last is not None
            return self.last

    def news(self) -> SelfTest:
        """The findings that have changed since the last call."""
        last, told = self.last or SelfTest(), self._told
        self._told = last
        return SelfTest(
            obstacle=last.obstacle if last.obstacle != told.obstacle else "",
            warning=last.warning if last.warning != told.warning else "",
        )

    def _take(self, found: SelfTest) -> None:
        before, self.last = self.last or SelfTest(), found
        self._failures = self._failures + 1 if found.obstacle else 0
        pause = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 10), _LONGEST_PAUSE_SECONDS)
        self._due = self._clock.monotonic() + (pause if self._failures else _GOOD_FOR_SECONDS)
        if found.obstacle and found.obstacle != before.obstacle:
            _LOG.error("self-test: %s", found.obstacle)
        if found.warning and found.warning != before.warning:
            _LOG.warning("self-test: %s", found.warning)
        if before.obstacle and not found.obstacle:
            _LOG.info("self-test: nothing prevents a reboot of the host any more")
