"""Rules of a simulated roll-out that change a part of the agents' rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from careen.plan.rollout_rules import RolloutRules
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.timeline import Obstacle


@dataclass(slots=True)
class Delegating:
    """Answers as `rules`; a subclass overrides what it changes."""

    rules: RolloutRules

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        return self.rules.line(waiting, at, movable)

    def claimed(self, node: str, at: datetime) -> None:
        self.rules.claimed(node, at)

    def released(self, node: str, at: datetime) -> None:
        self.rules.released(node, at)

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        return self.rules.refusal(node, at, forecast)

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        return self.rules.late_refusal(node, at)

    def next_opening(self, at: datetime) -> datetime | None:
        return self.rules.next_opening(at)

    def next_closing(self, at: datetime) -> datetime | None:
        return self.rules.next_closing(at)
