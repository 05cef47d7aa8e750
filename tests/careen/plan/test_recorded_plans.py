"""Tests that the plans and forecasts of generated clusters are exactly equal to their records in
recorded_plans.json."""

from __future__ import annotations

import json

import pytest

from scheduler_core.framework.scoring import by_usage
from tests.careen.plan.recorded_plans import RECORD, cases, digest

RECORDED = json.loads(RECORD.read_text())
CASES = cases()


def test_every_generated_plan_and_forecast_has_a_record() -> None:
    assert list(RECORDED) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_plan_or_forecast_equals_its_record(name: str) -> None:
    assert digest(CASES[name]()) == RECORDED[name]


@pytest.mark.parametrize("name", [name for name in CASES if " 24 nodes" in name or "1 of 300" in name])
def test_the_schedulers_cache_for_large_clusters_changes_no_plan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_usage, "_FEWEST_NODES", 0)  # as in a large cluster
    assert digest(CASES[name]()) == RECORDED[name]


def test_the_recorded_cases_cover_every_event_of_a_roll_out() -> None:
    for what in ("double moves", "preempted", "waits", "lost", "left", "hindrances", "blocked", "pending", "returns"):
        assert any(recorded.get(what) for recorded in RECORDED.values()), what
