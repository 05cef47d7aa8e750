"""Tests the positions of times on the time axis of a plan's page, and which times have a label."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from careen.report.page.axis import MOST_TICKS, Axis


def axis(begins: datetime, length: timedelta) -> Axis:
    return Axis(((begins, begins + length),))


def test_time_labels_are_at_round_local_times() -> None:
    begins = datetime(2026, 3, 4, 21, 7, 30, tzinfo=UTC)
    labels = [tick.label for tick in axis(begins, timedelta(hours=1)).ticks(ZoneInfo("Asia/Kolkata"))]
    assert labels == ["Thu 05 Mar 02:37", "02:50", "03:00", "03:10", "03:20", "03:30"]


def test_each_time_label_is_drawn_at_the_position_of_its_time() -> None:
    begins = datetime(2026, 3, 4, 22, 0, tzinfo=UTC)
    assert [(tick.label, tick.percent) for tick in axis(begins, timedelta(minutes=40)).ticks(UTC)] == [
        ("Wed 04 Mar 22:00", 0.0),
        ("22:05", 12.5),
        ("22:10", 25.0),
        ("22:15", 37.5),
        ("22:20", 50.0),
        ("22:25", 62.5),
        ("22:30", 75.0),
        ("22:35", 87.5),
    ]


@pytest.mark.parametrize("day", [datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)])
def test_time_labels_stay_at_round_times_across_a_clock_change(day: datetime) -> None:
    labels = [tick.label for tick in axis(day, timedelta(hours=4)).ticks(ZoneInfo("Europe/Berlin"))][1:]
    assert {label[-2:] for label in labels} <= {"00", "30"}


@given(st.integers(1, 40 * 86_400), st.integers(0, 86_400))
@settings(deadline=None)
def test_time_labels_are_few_and_in_order_and_inside_the_time_line(seconds: int, offset: int) -> None:
    begins = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=offset)
    places = [tick.percent for tick in axis(begins, timedelta(seconds=seconds)).ticks(UTC)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert len(places) <= MOST_TICKS + 2
