"""The interface through which a simulated roll-out calls the rules that its caller provides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.timeline import Obstacle


class Rules(Protocol):
    """The rules of a roll-out, in addition to those of the scheduler: which node may drain and reboot, and when. A node
    drains and reboots only while it holds a claim on the reboot lock. Times are timezone-aware. The simulated time
    never decreases from one call to the next."""

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """Returns the waiting nodes that may try to take a claim now, in the order in which they try. Empty if the
        concurrency (the number of claims at once) is used up. `movable(node)` counts the pods that a drain of the node
        would evict."""

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        """Returns why the node may not take a claim on the reboot lock now, or None if it may take one. If `forecast`
        is None, checks only the rules that need no forecast."""

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        """Returns why the drained node may not reboot now, or None if it may reboot. After a refusal, the drain is
        undone."""

    def claimed(self, node: str, at: datetime) -> None:
        """Records that the node holds a claim on the reboot lock from now on."""

    def released(self, node: str, at: datetime) -> None:
        """Records that the node released its claim on the reboot lock."""

    def next_opening(self, at: datetime) -> datetime | None:
        """Returns the first time after `at` at which a rule may stop refusing a node, although nothing but the time has
        changed. For example, a maintenance window opens at this time. Returns None if there is no such time."""

    def next_closing(self, at: datetime) -> datetime | None:
        """Returns the last second of the maintenance window that is open at `at`, or, if none is open, of the next
        window. Returns None if the window never ends or no window follows."""
