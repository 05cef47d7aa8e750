"""Tests which nodes of a simulated roll-out may take a claim on the reboot lock. A refusal because of a
forecast is kept until some node is back in service."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.rollout_parts.permission import Permission
from scheduler_core.simulation.timeline import Obstacle

T0 = datetime(2026, 3, 4, 22, 0, tzinfo=UTC)
CLOSED = Obstacle(rule="window", subject="closed", sentence="the window is closed")
NO_ROOM = Obstacle(rule="forecast", subject="no room", sentence="shop/web-1 finds no room")


@dataclass
class Refusals:
    """Rules that give the same answer for every node. Without a forecast, the answer is `at_once`. With a forecast, the
    answer is `by_forecast`. The answer None means that the rules do not refuse the node."""

    at_once: Obstacle | None = None
    by_forecast: Obstacle | None = None
    forecasts: list[str] = field(default_factory=list)

    def refusal(self, node: str, _at: datetime, forecast: Forecast | None) -> Obstacle | None:
        return self.at_once if forecast is None else self.by_forecast

    def forecast(self, node: str) -> Forecast:
        self.forecasts.append(node)
        return Forecast(node=node, made_at="", pods=())

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        raise NotImplementedError

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        raise NotImplementedError

    def claimed(self, node: str, at: datetime) -> None:
        raise NotImplementedError

    def released(self, node: str, at: datetime) -> None:
        raise NotImplementedError

    def next_opening(self, at: datetime) -> datetime | None:
        raise NotImplementedError

    def next_closing(self, at: datetime) -> datetime | None:
        raise NotImplementedError


def test_no_forecast_is_made_if_a_gate_refuses_the_node_before_the_forecast() -> None:
    rules = Refusals(at_once=CLOSED)
    assert Permission(rules, rules.forecast).refusal("n1", T0) == CLOSED
    assert rules.forecasts == []


def test_the_refusal_by_a_forecast_is_kept_until_some_node_is_back_in_service() -> None:
    rules = Refusals(by_forecast=NO_ROOM)
    permission = Permission(rules, rules.forecast)
    assert [permission.refusal("n1", T0), permission.refusal("n1", T0)] == [NO_ROOM, NO_ROOM]
    assert (rules.forecasts, permission.is_kept("n1")) == (["n1"], True)
    permission.node_returned()
    assert (permission.is_kept("n1"), permission.was_refused("n1")) == (False, True)
    rules.by_forecast = None
    assert permission.refusal("n1", T0) is None
    assert (rules.forecasts, permission.was_refused("n1")) == (["n1", "n1"], False)


def test_a_closed_window_is_reported_even_if_the_forecast_has_already_refused_the_node() -> None:
    rules = Refusals(by_forecast=NO_ROOM)
    permission = Permission(rules, rules.forecast)
    permission.refusal("n1", T0)
    rules.at_once = CLOSED
    assert permission.refusal("n1", T0) == CLOSED


def test_a_refusal_because_of_a_pod_that_can_never_be_evicted_is_kept_while_it_bars_the_node() -> None:
    barred = Obstacle(rule="forecast", subject="the disruption budget shop/a", sentence="never", barred=("shop/a-1",))
    rules, standing = Refusals(by_forecast=barred), {("n1", ("shop/a-1",))}
    permission = Permission(rules, rules.forecast, lambda name, pods: (name, pods) in standing)
    permission.refusal("n1", T0)
    permission.node_returned()
    assert (permission.refusal("n1", T0), permission.is_kept("n1"), rules.forecasts) == (barred, True, ["n1"])
    standing.clear()
    assert (permission.is_kept("n1"), permission.refusal("n1", T0)) == (False, barred)
    assert rules.forecasts == ["n1", "n1"]


def test_the_report_has_the_reasons_of_the_end() -> None:
    barred = Obstacle(rule="forecast", subject="the disruption budget shop/a", sentence="never", barred=("shop/a-1",))
    rules = Refusals(by_forecast=barred)
    permission = Permission(rules, rules.forecast, lambda _name, _pods: True)
    permission.refusal("n1", T0)
    permission.node_returned()
    rules.by_forecast = NO_ROOM
    assert permission.refusal("n1", T0) == barred
    assert permission.refusal_at_the_end("n1", T0) == NO_ROOM
