"""The clock of a simulation, and the functions that it calls at later times."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(slots=True)
class Agenda:
    """The simulated time, and the functions to call later. Functions that are due at the same time are called in the
    order in which they were added."""

    now: datetime
    _due: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    _added: int = 0

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Calls `act` when this many seconds have passed."""
        self._added += 1
        heapq.heappush(self._due, (self.now + timedelta(seconds=seconds), self._added, act))

    @property
    def next(self) -> datetime | None:
        """The time at which the next function is due, or None."""
        return self._due[0][0] if self._due else None

    def advance(self, at: datetime) -> None:
        """Sets the clock, and calls every function that is due by then. These functions may add others; those are
        called too if they are due."""
        self.now = at
        while self._due and self._due[0][0] <= at:
            _, _, act = heapq.heappop(self._due)
            act()
