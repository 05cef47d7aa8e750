"""Waits for an event with a time limit.

`asyncio.wait_for` of Python 3.11 loses a cancellation that arrives in the same loop iteration as the event. The
cancelled task then continues to run, and code that waits for the end of this task waits for ever. `asyncio.timeout`
does not lose the cancellation.
"""

from __future__ import annotations

import asyncio
import contextlib


async def wait_at_most(changed: asyncio.Event, seconds: float | None) -> bool:
    """Waits for the event. Returns False if the event has not come when the time is over. Without a limit (None), waits
    until the event comes.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if seconds is None else max(0.0, seconds)):
            await changed.wait()
    return changed.is_set()
