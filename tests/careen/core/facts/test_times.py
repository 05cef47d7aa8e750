"""Tests how times and durations are read and written as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from careen.core.facts.times import from_rfc3339, rfc3339, span


def test_a_time_is_written_in_utc_to_the_second() -> None:
    assert rfc3339(datetime(2026, 3, 4, 13, 0, 0, 999, tzinfo=timezone(timedelta(hours=1)))) == "2026-03-04T12:00:00Z"


def test_a_time_without_a_utc_offset_is_read_as_none() -> None:
    assert from_rfc3339("2026-03-04T13:00:00+01:00") == datetime(2026, 3, 4, 12, tzinfo=UTC)
    assert from_rfc3339("2026-03-04T12:00:00Z") == datetime(2026, 3, 4, 12, tzinfo=UTC)
    assert from_rfc3339("2026-03-04T12:00:00") is None
    assert from_rfc3339("tomorrow") is None


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"),
        (0.5, "0.5s"),
        (1, "1s"),
        (59.6, "1m"),
        (90, "1m30s"),
        (600, "10m"),
        (3600, "1h"),
        (5400, "1h30m"),
        (3601, "1h1s"),
        (7 * 86400, "168h"),
    ],
)
def test_a_duration_is_written_as_in_the_settings(seconds: float, expected: str) -> None:
    assert span(seconds) == expected
