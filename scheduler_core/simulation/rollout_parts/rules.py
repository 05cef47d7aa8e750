"""The interface through which a simulated roll-out asks the rules of the caller."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.timeline import Obstacle


class Rules(Protocol):
    """The rules of a roll-out, in addition to those of the scheduler. Times are timezone-aware. No call has an earlier
    simulated time than the calls before it."""

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """Returns the waiting nodes that may ask for a claim now, in the order in which they ask; empty if the
        concurrency (the number of claims at once) is used up. `movable(node)` counts the pods that a drain of the node
        would have to move."""

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        """Returns why the node may not take a claim now, or None if it may. If `forecast` is None, checks only the
        rules that need no forecast."""

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        """Returns why the drained node may not reboot now, or None if it may. After a refusal, the drain is undone."""

    def claimed(self, node: str, at: datetime) -> None:
        """Records that the node holds a claim from now on."""

    def released(self, node: str, at: datetime) -> None:
        """Records that the node released its claim."""

    def next_opening(self, at: datetime) -> datetime | None:
        """Returns the first time after `at` at which a refusal may end without any event, for example because a
        maintenance window opens. None if there is no such time."""

    def next_closing(self, at: datetime) -> datetime | None:
        """Returns the last second of the maintenance window that is open at `at`, or of the next one. Returns None if
        the window never ends or no window follows."""
