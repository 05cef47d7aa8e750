"""Several requests of one turn at once: all come to their end, or none goes on when one breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def all_or_none(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Waits for all. When one raises, or the turn is cut short, it cancels the others: none outlives its turn."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
