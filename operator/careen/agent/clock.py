"""The agent's clock, which reads the system's time."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """Implements `Clock` with the system's own clocks."""

    def now(self) -> datetime:
        """In UTC."""
        return datetime.now(UTC)

    monotonic = staticmethod(time.monotonic)
    """Never goes backwards."""

    async def sleep(self, seconds: float) -> None:
        """Other tasks run meanwhile."""
        await asyncio.sleep(seconds)
