"""The gate that refuses a reboot because of the forecast of the node's drain. The policy decides which forecast
outcomes, such as a pod without room, refuse the reboot."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.drain.forecast_objection import objection_to
from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.policy import DrainPolicy, ForecastPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.drain_forecast import drain_forecast
from careen.core.gates.question import When
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from scheduler_core.values import replace_value
from tests.careen.core.builders import a_policy, a_situation


def a_forecast(*outcomes: tuple[str, Outcome], never: bool = False) -> Forecast:
    pods = tuple(
        PodForecast(namespace="shop", name=name, uid=name, outcome=outcome, sentence="why", is_never=never)
        for name, outcome in outcomes
    )
    return Forecast(node="n1", made_at="2026-03-04T12:00:00Z", pods=pods)


FINE = a_forecast(("a", Outcome.MOVES), ("b", Outcome.STAYS), ("c", Outcome.RETURNS), ("d", Outcome.LOST))
PENDING = a_forecast(("a", Outcome.MOVES), ("b", Outcome.PENDING))
UNKNOWN = a_forecast(("a", Outcome.UNKNOWN))
LEFT_OUT = replace_value(UNKNOWN, left_out=("a",))
NOT_NOW = a_forecast(("a", Outcome.BLOCKED))
NEVER = a_forecast(("a", Outcome.BLOCKED), never=True)
FORCED = DrainPolicy(force_reboot=True, force_past_budgets=True)


@pytest.mark.parametrize(
    ("forecast", "policy", "expected"),
    [
        (FINE, {}, None),
        (PENDING, {}, Code.FORECAST_REFUSES),
        (PENDING, {"forecast_pending_allowed": 1}, None),
        (UNKNOWN, {}, Code.FORECAST_REFUSES),
        (UNKNOWN, {"forecast_unknown_allowed": 1}, None),
        (LEFT_OUT, {}, None),
        (NOT_NOW, {}, None),
        (NEVER, {}, Code.FORECAST_REFUSES),
        (NEVER, {"drain": DrainPolicy(force_reboot=True)}, Code.FORECAST_REFUSES),
        (NEVER, {"drain": FORCED}, None),
        (PENDING, {"forecast": ForecastPolicy.WARN}, None),
        (PENDING, {"forecast": ForecastPolicy.OFF}, None),
        (Unknown("the child ran out of memory"), {}, Code.FORECAST_UNKNOWN),
        (NOT_ASKED, {}, Code.FORECAST_UNKNOWN),
        (Unknown("the child ran out of memory"), {"forecast": ForecastPolicy.WARN}, None),
    ],
)
def test_the_policy_decides_which_forecast_outcomes_refuse_the_reboot(
    forecast: Any, policy: dict[str, Any], expected: Code | None
) -> None:
    refused = drain_forecast.ask(a_situation(policy=a_policy(**policy), forecast=forecast), When.READY)
    assert (refused.code if refused else None) is expected


def test_the_refusal_lists_every_cause_with_its_pods() -> None:
    forecast = a_forecast(("a", Outcome.PENDING), ("b", Outcome.UNKNOWN), ("c", Outcome.MOVES))
    assert (
        objection_to(forecast, a_policy())
        == "1 of 3 pods would not find room: shop/a (why); 1 of 3 pods cannot be predicted: shop/b (why)"
    )
