"""Runs concurrent requests of one round of the agent's loop. Either all requests finish, or the first error cancels all
requests that are still running."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def all_or_none(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Waits for all coroutines. If a coroutine raises an error or the caller is cancelled, cancels the other
    coroutines, so that none of them outlives the call."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
