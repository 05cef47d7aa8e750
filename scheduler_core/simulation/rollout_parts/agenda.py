"""The clock of a simulation, and the functions that the simulation calls at later times."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(slots=True)
class Agenda:
    """The simulated time, and the functions to call later. Functions for the same time are called in the order in which
    they were added."""

    now: datetime
    _due: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    _added: int = 0

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Adds a function that is called when this number of simulated seconds has passed."""
        self._added += 1
        heapq.heappush(self._due, (self.now + timedelta(seconds=seconds), self._added, act))

    @property
    def next(self) -> datetime | None:
        """The time at which the next function must be called, or None if there is no further function."""
        return self._due[0][0] if self._due else None

    def advance(self, at: datetime) -> None:
        """Sets the clock to this time, and calls every function whose time has come. These functions may add further
        functions, which are also called if their time has come."""
        self.now = at
        while self._due and self._due[0][0] <= at:
            _, _, act = heapq.heappop(self._due)
            act()
