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
    only then do other nodes have new room. A refusal because of pods that can never be evicted is kept as long as
    `bars` says that one of them still is on the node, under a budget that still forbids its eviction: room does not
    help it.
    """

    rules: Rules
    forecast: Callable[[str], Forecast]
    bars: Callable[[str, tuple[str, ...]], bool] = lambda _name, _pods: False
    _returns: int = 0
    _refusals: dict[str, tuple[int, Obstacle]] = field(default_factory=dict)  # with the value of `_returns` then

    def refusal(self, name: str, at: datetime) -> Obstacle | None:
        """Why the node may not take a claim now; None if it may."""
        obstacle = self.rules.refusal(name, at, None)
        return obstacle or (self._refusals[name][1] if self.is_kept(name) else self._by_forecast(name, at))

    def refusal_at_the_end(self, name: str, at: datetime) -> Obstacle | None:
        """`refusal` with all its reasons as they are now, for the report."""
        if self.was_refused(name) and self._refusals[name][0] != self._returns:
            del self._refusals[name]
        return self.refusal(name, at)

    def _by_forecast(self, name: str, at: datetime) -> Obstacle | None:
        obstacle = self.rules.refusal(name, at, self.forecast(name))
        if obstacle is None:
            self._refusals.pop(name, None)
        else:
            self._refusals[name] = (self._returns, obstacle)
        return obstacle

    def is_kept(self, name: str) -> bool:
        """Whether the forecast's refusal still applies."""
        if not self.was_refused(name):
            return False
        returns, obstacle = self._refusals[name]
        return returns == self._returns or (bool(obstacle.barred) and self.bars(name, obstacle.barred))

    def was_refused(self, name: str) -> bool:
        """Whether the last forecast was refused, even if that no longer applies."""
        return name in self._refusals

    def node_returned(self) -> None:
        """Nodes that were refused because of a forecast get a new one."""
        self._returns += 1
