"""Tests the values of a forecast, and their JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.simulation.forecast import BudgetNumbers, Forecast, Outcome, PodForecast, UnreadableForecastError

numbers = st.builds(
    BudgetNumbers,
    namespace=st.text(),
    name=st.text(),
    disruptions_allowed=st.integers(),
    current_healthy=st.integers(),
    desired_healthy=st.integers(),
    expected_pods=st.integers(),
)
pods = st.builds(
    PodForecast,
    namespace=st.text(),
    name=st.text(),
    uid=st.text(),
    outcome=st.sampled_from(Outcome),
    sentence=st.text(),
    landing=st.lists(st.text()).map(tuple),
    is_never=st.booleans(),
    budget=st.none() | numbers,
    owner=st.text(),
    loses_data=st.booleans(),
    is_cut=st.booleans(),
)
forecasts = st.builds(
    Forecast,
    node=st.text(),
    made_at=st.text(),
    scenarios=st.integers(1),
    already_pending=st.integers(0),
    pods=st.lists(pods, max_size=5).map(tuple),
    notes=st.lists(st.text()).map(tuple),
)


# A forecast that was written as JSON and read again equals the original forecast.
@given(forecasts)
def test_a_forecast_is_the_same_after_json(forecast: Forecast) -> None:
    assert Forecast.from_mapping(json.loads(json.dumps(forecast.to_mapping()))) == forecast


def test_a_forecast_of_an_older_release_is_read() -> None:
    pod = {"namespace": "shop", "name": "a", "uid": "u", "outcome": "moves", "sentence": "", "landing": ["n2"]}
    read = Forecast.from_mapping({"version": 1, "node": "n1", "madeAt": "t", "notes": [], "pods": [pod]})
    assert (read.scenarios, read.already_pending, read.pods[0].is_cut, read.pods[0].landing) == (1, 0, False, ("n2",))


@pytest.mark.parametrize(
    "mapping",
    [
        {},
        {"version": 2, "node": "n", "madeAt": "", "notes": [], "pods": []},
        {"version": 1, "node": "n", "madeAt": "", "notes": [], "pods": [{}]},
        {
            "version": 1,
            "node": "n",
            "madeAt": "",
            "notes": [],
            "pods": [{"namespace": "a", "name": "b", "uid": "c", "outcome": "explodes", "sentence": ""}],
        },
    ],
)
def test_reading_an_invalid_forecast_is_an_error(mapping: dict[str, Any]) -> None:
    with pytest.raises(UnreadableForecastError):
        Forecast.from_mapping(mapping)


def test_a_forecast_gives_the_number_of_pods_for_each_outcome() -> None:
    def pod(name: str, outcome: Outcome, *, never: bool = False) -> PodForecast:
        return PodForecast(namespace="shop", name=name, uid=name, outcome=outcome, sentence="", is_never=never)

    forecast = Forecast(
        node="n1",
        made_at="",
        pods=(pod("a", Outcome.BLOCKED), pod("b", Outcome.MOVES), pod("c", Outcome.BLOCKED, never=True)),
    )
    assert list(forecast.counts.items()) == [(Outcome.MOVES, 1), (Outcome.BLOCKED, 2)]
    assert [found.title for found in forecast.never] == ["shop/c"]
    assert [found.name for found in forecast.with_outcome(Outcome.BLOCKED)] == ["a", "c"]


def test_reading_a_forecast_does_not_load_numpy() -> None:
    code = "import sys, scheduler_core.simulation.forecast; print('numpy' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )
