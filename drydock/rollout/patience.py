"""Time limits that allow more time on a loaded machine, and that begin again after each step of progress.

The caller waits for another process on the same machine. On a loaded machine each process runs more slowly, so a
limit in wall-clock time could not distinguish a slow process from a process that hangs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable


class GaveUp(Exception):
    """An expected event did not happen in time. The message names the event, the time waited, and the cause if it is
    known.
    """


def crowding(ours: int = 0) -> float:
    """Returns the number of runnable processes per processor, from the load average of the last minute. The result is
    at least 1.

    `ours` is the number of the demo's own processes. These processes are not counted, because they must not extend the
    demo's limits.
    """
    try:
        return max(1.0, (os.getloadavg()[0] - ours) / len(os.sched_getaffinity(0)))
    except (OSError, AttributeError):  # a system that counts no load, or has no notion of affinity
        return 1.0


class TimeLimit:
    """A time limit that is longer on a loaded machine. `seconds` is the limit on an idle machine.

    Call `is_over` regularly. Each call adds the time since the last call, divided by the load. A call with a new value
    of `progress` sets the sum to zero.
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
        """Returns a text for the message of `GaveUp` that says how long the caller waited, for example `31 s`. If
        the load was high, the text contains the load."""
        crowd = (
            f" (on a computer with {self.most_crowded:.0f} processes for each processor)"
            if self.most_crowded >= 2
            else ""
        )
        return f"{self._looked - self._began:.0f} s{crowd}"
