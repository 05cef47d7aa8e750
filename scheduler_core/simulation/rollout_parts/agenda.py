"""The clock of a simulation, and its scheduled acts."""

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
        """When the next act is due; None if no act is scheduled."""
        return self._due[0][0] if self._due else None

    def advance(self, at: datetime) -> None:
        """Sets the clock and carries out every act that is due by then, including acts added for this instant."""
        self.now = at
        while self._due and self._due[0][0] <= at:
            _, _, act = heapq.heappop(self._due)
            act()
