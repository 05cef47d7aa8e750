"""The clock of a simulation, and what it calls at later times."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(slots=True)
class Agenda:
    """Functions for the same time are called in the order in which they were added."""

    now: datetime
    _due: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    _added: int = 0

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Calls the function when so many simulated seconds have passed."""
        self._added += 1
        heapq.heappush(self._due, (self.now + timedelta(seconds=seconds), self._added, act))

    @property
    def next(self) -> datetime | None:
        """When the next function is due; None if there is none."""
        return self._due[0][0] if self._due else None

    def advance(self, at: datetime) -> None:
        """Sets the clock, and calls every function whose time has come, also those that are added meanwhile."""
        self.now = at
        while self._due and self._due[0][0] <= at:
            _, _, act = heapq.heappop(self._due)
            act()
