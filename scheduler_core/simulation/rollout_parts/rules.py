"""The rules of a roll-out, as the simulation asks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.timeline import Obstacle


class Rules(Protocol):
    """The rules that are not the scheduler's. Instants are timezone-aware; calls come in the order of the simulated
    time."""

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """The waiting nodes that may start now, the next one first; none if no place is free. `movable`: the number of
        pods that would have to move."""

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        """Why the node may not take a claim now; without a forecast, only reasons that need none."""

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        """Why the drained node may not reboot now, so that its drain is undone."""

    def claimed(self, node: str, at: datetime) -> None:
        """Records that the node has a claim from now on."""

    def released(self, node: str, at: datetime) -> None:
        """Records that the node's claim was released."""

    def next_opening(self, at: datetime) -> datetime | None:
        """The first instant after `at` at which a refusal may end by the clock alone; None if there is none."""

    def next_closing(self, at: datetime) -> datetime | None:
        """The last second of the window that is open at `at`, or of the next one; None if it never ends or never
        opens."""
