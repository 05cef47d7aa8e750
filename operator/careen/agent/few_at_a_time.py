"""Concurrent requests of one turn: all finish, or the first error cancels the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def all_or_none(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """On an error or a cancellation of the caller, cancels the other coroutines, so that none outlives the call."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
