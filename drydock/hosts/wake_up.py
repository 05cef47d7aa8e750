"""Waiting for a change, but not for ever.

`asyncio.wait_for` of Python 3.11 swallows a cancellation that comes in the same turn as the change, and whoever waits
for the cancelled task then waits for ever; `asyncio.timeout` does not.
"""

from __future__ import annotations

import asyncio
import contextlib


async def wait_at_most(changed: asyncio.Event, seconds: float | None) -> bool:
    """Wait for the event; false when the time was over first. None waits without end."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if seconds is None else max(0.0, seconds)):
            await changed.wait()
    return changed.is_set()
