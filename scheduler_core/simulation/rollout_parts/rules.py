"""The interface through which a simulated roll-out asks the rules of the caller."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.timeline import Obstacle


class Rules(Protocol):
    """The rules of a roll-out, beside those of the scheduler. Times are timezone-aware. The simulation calls in the
    order of the simulated time."""

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """Returns the waiting nodes that may start now, the next one first; empty if the concurrency is used up.
        `movable` counts the pods of a node that a drain would have to move."""

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        """Returns why the node may not take a claim now, or None. Without a forecast, checks only the rules that need
        none."""

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        """Returns why the drained node may not reboot now, or None. After a refusal, the drain is undone."""

    def claimed(self, node: str, at: datetime) -> None:
        """Records that the node has a claim from now on."""

    def released(self, node: str, at: datetime) -> None:
        """Records that the node released its claim."""

    def next_opening(self, at: datetime) -> datetime | None:
        """Returns the first time after `at` at which a refusal may end because time passed, or None."""

    def next_closing(self, at: datetime) -> datetime | None:
        """Returns the last second of the window that is open at `at`, or of the next window. Returns None if the window
        never ends or no window follows."""
