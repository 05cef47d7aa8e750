"""Instants as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from careen.core.facts.times import from_rfc3339, rfc3339


def test_a_time_is_written_in_utc_to_the_second() -> None:
    assert rfc3339(datetime(2026, 3, 4, 13, 0, 0, 999, tzinfo=timezone(timedelta(hours=1)))) == "2026-03-04T12:00:00Z"


def test_a_time_is_read_only_with_its_offset() -> None:
    assert from_rfc3339("2026-03-04T13:00:00+01:00") == datetime(2026, 3, 4, 12, tzinfo=UTC)
    assert from_rfc3339("2026-03-04T12:00:00Z") == datetime(2026, 3, 4, 12, tzinfo=UTC)
    assert from_rfc3339("2026-03-04T12:00:00") is None
    assert from_rfc3339("tomorrow") is None
