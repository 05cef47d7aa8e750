"""Tests without helm that the example values for the chart cover every setting of the tree."""

from __future__ import annotations

import pytest

from tests.chart.given import GIVEN, NAMES, parsed


def test_every_setting_of_the_chart_has_an_example_value() -> None:
    missing, unknown = sorted(NAMES.keys() - GIVEN.keys()), sorted(GIVEN.keys() - NAMES.keys())
    assert missing == [], "add a value that is not the default to GIVEN in tests/chart/given.py"
    assert unknown == [], "remove the value of the former setting from GIVEN in tests/chart/given.py"


@pytest.mark.parametrize("chart_key", sorted(GIVEN.keys() & NAMES.keys()))
def test_the_settings_notation_understands_each_example_value(chart_key: str) -> None:
    parsed(chart_key)
