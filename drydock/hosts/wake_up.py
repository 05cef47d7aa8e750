"""Waits for an event with a time limit.

`asyncio.wait_for` of Python 3.11 loses a cancellation that arrives in the same loop iteration as the event: the task
goes on, and whoever waits for its end waits for ever. `asyncio.timeout` does not.
"""

from __future__ import annotations

import asyncio
import contextlib


async def wait_at_most(changed: asyncio.Event, seconds: float | None) -> bool:
    """False if the time was over first. None waits without a limit."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if seconds is None else max(0.0, seconds)):
            await changed.wait()
    return changed.is_set()
