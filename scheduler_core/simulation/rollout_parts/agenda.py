"""The clock of a simulation, and what is to be done when."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(slots=True)
class Agenda:
    """The simulated time and the acts that are due later. Acts of one instant are done in the order in which they
    were added."""

    now: datetime
    _due: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    _added: int = 0

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Adds an act that is due so many seconds from now."""
        self._added += 1
        heapq.heappush(self._due, (self.now + timedelta(seconds=seconds), self._added, act))

    @property
    def next(self) -> datetime | None:
        """When the next act is due; None if nothing is to be done."""
        return self._due[0][0] if self._due else None

    def advance(self, at: datetime) -> None:
        """Sets the clock and does everything that is due by then, also what an act adds for this instant."""
        self.now = at
        while self._due and self._due[0][0] <= at:
            _, _, act = heapq.heappop(self._due)
            act()
