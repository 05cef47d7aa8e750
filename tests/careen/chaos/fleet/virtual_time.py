"""An event loop on virtual time. When every task sleeps, the clock jumps to the next timer, so several simulated hours
take a second. Two runs of the same simulation are identical."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Moves the virtual clock to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "no task waits for a timer, so the simulation would hang for ever"
            self.seconds += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop on virtual time, without sockets and threads."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.seconds


def run_virtually(story: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine `story` on virtual time, cancel the tasks that still run, and return the coroutine's result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story)
