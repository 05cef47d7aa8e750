"""The agent reports once that the forecast has refused a reboot for longer than `--forecast-patience` allows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from careen.agent.forecast.patience import ForecastPatience
from careen.core.decision import Refusal
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code

SINCE = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def refusal(code: Code = Code.FORECAST_REFUSES, since: datetime | None = SINCE) -> Refusal:
    return Refusal(gate="forecast", code=code, sentence="2 of 9 pods would not find room", since=since)


def test_a_refusal_is_not_reported_until_it_has_lasted_longer_than_forecast_patience() -> None:
    assert ForecastPatience(lambda: 3600.0).look((refusal(),), SINCE + HOUR) == (False, "")


def test_a_refusal_that_has_lasted_longer_than_forecast_patience_is_reported_once() -> None:
    patience = ForecastPatience(lambda: 3600.0)
    late = SINCE + HOUR + timedelta(seconds=1)
    assert patience.look((refusal(),), late) == (
        True,
        "the forecast has refused the reboot of this node since 2026-03-04 12:00 UTC: 2 of 9 pods would not find room",
    )
    assert patience.look((refusal(),), late + HOUR) == (True, "")
    assert patience.look((), late + HOUR + HOUR) == (False, "")


def test_a_refusal_that_returns_after_each_new_claim_is_treated_as_one_refusal() -> None:
    """The agent tries dry-run evictions only while its node has a claim. Each new claim removes the refusal from the
    Node for some seconds. If a dry run is refused again, the refusal returns with a new start time."""
    patience = ForecastPatience(lambda: 3600.0)
    minutes = [timedelta(minutes=minute) for minute in range(62)]
    told = []
    for at in minutes:
        told.append(patience.look((refusal(Code.EVICTION_REFUSED, SINCE + at),), SINCE + at))
        assert patience.look((), SINCE + at + timedelta(seconds=30), Phase.CLAIMING)[1] == ""
    assert told[60] == (False, "")
    assert told[61] == (
        True,
        "the forecast has refused the reboot of this node since 2026-03-04 12:00 UTC: 2 of 9 pods would not find room",
    )


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.IDLE, Phase.FAILED])
def test_the_forecast_patience_starts_again_after_the_node_left_the_phase_waiting(phase: Phase) -> None:
    patience = ForecastPatience(lambda: 3600.0)
    patience.look((refusal(),), SINCE + HOUR / 2)
    assert patience.look((), SINCE + HOUR / 2, phase) == (False, "")
    again = SINCE + HOUR
    assert patience.look((refusal(since=again),), again + HOUR / 2) == (False, "")


def test_a_second_refusal_of_the_forecast_is_also_reported() -> None:
    patience = ForecastPatience(lambda: 3600.0)
    patience.look((refusal(),), SINCE + 2 * HOUR)
    again = SINCE + 5 * HOUR
    assert patience.look((refusal(since=again),), again + 2 * HOUR)[1] != ""


@pytest.mark.parametrize("other", [refusal(Code.OUTSIDE_WINDOW), refusal(Code.HELD), refusal(since=None)])
def test_refusals_of_gates_other_than_forecast_are_not_reported(other: Refusal) -> None:
    assert ForecastPatience(lambda: 3600.0).look((other,), SINCE + 48 * HOUR) == (False, "")


@pytest.mark.parametrize("code", [Code.FORECAST_UNKNOWN, Code.EVICTION_REFUSED])
def test_an_unknown_forecast_and_a_refused_dry_run_are_reported(code: Code) -> None:
    assert ForecastPatience(lambda: 3600.0).look((refusal(code),), SINCE + 2 * HOUR)[0]


def test_a_change_of_the_forecast_patience_applies_at_once() -> None:
    seconds = [7200.0]
    patience = ForecastPatience(lambda: seconds[0])
    assert not patience.look((refusal(),), SINCE + 1.5 * HOUR)[0]
    seconds[0] = 60.0
    assert patience.look((refusal(),), SINCE + 1.5 * HOUR)[0]
