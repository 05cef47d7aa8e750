"""Time limits that are longer on a loaded machine and begin again after each progress.

The caller waits for another process on the same machine: by the wall clock alone, a slow process looks like a hung one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable


class GaveUp(Exception):
    """Something did not happen in time. The message names it, the time waited, and the cause if known."""


def crowding(ours: int = 0) -> float:
    """Runnable processes per processor, from the load average of the last minute; at least 1.

    The demo's own processes (`ours`) do not count: they must not extend its limits.
    """
    try:
        return max(1.0, (os.getloadavg()[0] - ours) / len(os.sched_getaffinity(0)))
    except (OSError, AttributeError):  # a system that counts no load, or has no notion of affinity
        return 1.0


class TimeLimit:
    """`seconds` is the limit on an idle machine.

    Call `is_over` regularly: each call adds the time since the last one, divided by the load. A new `progress` starts
    again from zero.
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
        """Whether the limit has passed since the start, or since `progress` last changed."""
        now, crowd = self._clock(), self._crowding()
        self.most_crowded = max(self.most_crowded, crowd)
        self._passed += (now - self._looked) / crowd
        self._looked = now
        if progress != self._progress:
            self._progress, self._passed = progress, 0.0
        return self._passed > self.seconds

    @property
    def waited(self) -> str:
        """How long the caller waited, for the message of `GaveUp`: `31 s`, with the load if it was high."""
        crowd = (
            f" (on a computer with {self.most_crowded:.0f} processes for each processor)"
            if self.most_crowded >= 2
            else ""
        )
        return f"{self._looked - self._began:.0f} s{crowd}"
