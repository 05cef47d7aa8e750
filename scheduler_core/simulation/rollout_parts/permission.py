"""Which node may take a claim now, and how long a refusal by a forecast applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.rollout_parts.rules import Rules
from scheduler_core.simulation.timeline import Obstacle


@dataclass(slots=True)
class Permission:
    """Checks by the rules whether a node may take a claim, first without and then with a forecast.

    A forecast simulates a whole drain, which takes time. So its refusal is kept until some node is back in service:
    only then do other nodes have new room.
    """

    rules: Rules
    forecast: Callable[[str], Forecast]
    _returns: int = 0
    _refusals: dict[str, tuple[int, Obstacle]] = field(default_factory=dict)  # with the value of `_returns` then

    def refusal(self, name: str, at: datetime) -> Obstacle | None:
        """Why the node may not take a claim now; None if it may."""
        obstacle = self.rules.refusal(name, at, None)
        return obstacle or (self._refusals[name][1] if self.is_kept(name) else self._by_forecast(name, at))

    def _by_forecast(self, name: str, at: datetime) -> Obstacle | None:
        obstacle = self.rules.refusal(name, at, self.forecast(name))
        if obstacle is None:
            self._refusals.pop(name, None)
        else:
            self._refusals[name] = (self._returns, obstacle)
        return obstacle

    def is_kept(self, name: str) -> bool:
        """Whether the forecast's refusal still applies: no node has returned to service since."""
        return self.was_refused(name) and self._refusals[name][0] == self._returns

    def was_refused(self, name: str) -> bool:
        """Whether the last forecast was refused, even if that no longer applies."""
        return name in self._refusals

    def node_returned(self) -> None:
        """Nodes that were refused because of a forecast get a new one."""
        self._returns += 1
