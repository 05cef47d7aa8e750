"""The rules that the caller of a simulated roll-out provides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Protocol

from scheduler_core.arguments import several
from scheduler_core.simulation.forecast import Forecast, Outcome
from scheduler_core.simulation.timeline import Obstacle


class Rules(Protocol):
    """Which node may drain and reboot, and when, beside the scheduler's rules. Times are timezone-aware and never
    decrease from one call to the next."""

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """The waiting nodes that may try to take a claim now, in this order; none if the concurrency is used up.
        `movable(node)` counts the pods that a drain would evict."""

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        """Why the node may not take a claim now; None if it may. Without `forecast`, only by the rules that need
        none."""

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        """Why the drained node may not reboot now; None if it may. A refusal undoes the drain."""

    def claimed(self, node: str, at: datetime) -> None:
        """The node holds a claim from now on."""

    def released(self, node: str, at: datetime) -> None:
        """The node holds no claim from now on."""

    def next_opening(self, at: datetime) -> datetime | None:
        """The first time after `at` at which a rule may cease to refuse although nothing but the time changes, for
        example when a window opens; None if there is none."""

    def next_closing(self, at: datetime) -> datetime | None:
        """The last second of the window that is open at `at`, or else of the next one; None if it never ends or none
        follows."""


class NodesAtOnce(Rules):
    """Drains at most so many nodes at once, in the order in which they were named. A node waits while its drain would
    end like one of `refuses` for a pod."""

    def __init__(self, most: int = 1, refuses: Iterable[Outcome] = (Outcome.PENDING, Outcome.BLOCKED)) -> None:
        if type(most) is not int or most < 1:
            raise ValueError(f"most is {most!r}: expected the number of nodes that may be drained at once, 1 or more")
        self._most = most
        self._refuses = frozenset(several("refuses", refuses, Outcome))
        self._held: set[str] = set()

    def line(
        self,
        waiting: Collection[str],
        at: datetime,  # noqa: ARG002
        movable: Callable[[str], int],  # noqa: ARG002
    ) -> Sequence[str]:
        return tuple(waiting) if len(self._held) < self._most else ()

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:  # noqa: ARG002
        for pod in forecast.pods if forecast else ():
            if pod.outcome in self._refuses:
                return Obstacle(rule="forecast", subject=pod.title, sentence=f"{pod.title}: {pod.sentence}")
        return None

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:  # noqa: ARG002
        return None

    def claimed(self, node: str, at: datetime) -> None:  # noqa: ARG002
        self._held.add(node)

    def released(self, node: str, at: datetime) -> None:  # noqa: ARG002
        self._held.discard(node)

    def next_opening(self, at: datetime) -> datetime | None:  # noqa: ARG002
        return None

    def next_closing(self, at: datetime) -> datetime | None:  # noqa: ARG002
        return None
