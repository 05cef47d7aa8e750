"""Plans and forecasts come out as they were recorded, to the last byte: see recorded_plans.py."""

from __future__ import annotations

import json

import pytest

from tests.careen.plan.recorded_plans import RECORD, cases, digest

RECORDED = json.loads(RECORD.read_text())
CASES = cases()


def test_every_case_is_recorded() -> None:
    assert list(RECORDED) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_plan_or_forecast_comes_out_as_recorded(name: str) -> None:
    assert digest(CASES[name]()) == RECORDED[name]


def test_the_cases_meet_what_a_roll_out_can_meet() -> None:
    for what in ("double moves", "preempted", "waits", "lost", "left", "hindrances", "blocked", "pending", "returns"):
        assert any(recorded.get(what) for recorded in RECORDED.values()), what
