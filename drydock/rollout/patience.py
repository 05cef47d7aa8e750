"""How long to wait on a computer whose speed nobody knows: by its own seconds, and anew after each step forward.

What is waited for here is other processes of the same computer. While sixty others queue for its two
processors, each of them gets a thirtieth of the time it would have alone, so a limit by the wall clock says
nothing about whether it hangs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable


class GaveUp(Exception):
    """What was waited for did not come about; the sentence says what that is, after how long, and what is known
    of the cause."""


def crowding(ours: int = 0) -> float:
    """How many runnable processes share each processor, by the load average of the last minute; at least 1.

    `ours` of them are left out: what a demo starts itself is no excuse for it.
    """
    try:
        return max(1.0, (os.getloadavg()[0] - ours) / len(os.sched_getaffinity(0)))
    except (OSError, AttributeError):  # a system that counts no load, or has no notion of affinity
        return 1.0


class Patience:
    """A time limit of so many seconds of a computer that has nothing else to do.

    Ask `is_over` at each look: what passed since the last look counts for less, the more crowded the computer is. A
    `progress` that differs from the last one starts the limit anew.
    """

    def __init__(
        self, seconds: float, *, clock: Callable[[], float] = time.monotonic, crowding: Callable[[], float] = crowding
    ) -> None:
        self.seconds = seconds
        self.most_crowded = 1.0
        self._clock = clock
        self._crowding = crowding
        self._began = self._looked = clock()
        self._passed = 0.0
        self._progress: object = None

    def is_over(self, progress: object = None) -> bool:
        """Whether the limit has passed since the beginning, or since `progress` last changed."""
        now, crowd = self._clock(), self._crowding()
        self.most_crowded = max(self.most_crowded, crowd)
        self._passed += (now - self._looked) / crowd
        self._looked = now
        if progress != self._progress:
            self._progress, self._passed = progress, 0.0
        return self._passed > self.seconds

    @property
    def waited(self) -> str:
        """`after 31 s`, and how crowded the computer was if it was, for the sentence that gives up."""
        crowd = (
            f" on a computer with {self.most_crowded:.0f} processes for each processor"
            if self.most_crowded >= 2
            else ""
        )
        return f"after {self._looked - self._began:.0f} s{crowd}"
