"""The rules of a roll-out, as the simulation asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.timeline import Obstacle


class Rules(Protocol):
    """Who may go, as far as it is not the scheduler's business. Instants are aware; calls come in the order of
    the simulated time."""

    def line(self, waiting: Sequence[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """The waiting nodes that may be asked now, the next one first; none when no place is free. `movable`:
        pods that would have to move."""

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        """Why the node may not take a claim now; without a forecast only what can be told without one."""

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        """Why the drained node may not reboot now, so that its drain is undone."""

    def claimed(self, node: str, at: datetime) -> None:
        """The node holds a claim from now on."""

    def released(self, node: str, at: datetime) -> None:
        """The node's claim was given back."""

    def next_opening(self, at: datetime) -> datetime | None:
        """The first instant after `at` at which the clock alone may turn a refusal into a yes; None when it
        never does."""

    def next_closing(self, at: datetime) -> datetime | None:
        """The last second of the window that is open at `at`, or of the next one; None when it never ends or
        never opens."""
