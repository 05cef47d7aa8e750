"""The agent's clock, which reads the system's time."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """Implements the interface `Clock` with the system's own clocks."""

    def now(self) -> datetime:
        """Returns the present time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Returns the seconds of a clock that never goes backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Waits for `seconds`."""
        await asyncio.sleep(seconds)
