"""Maintenance windows from cron expressions: when they open, for how long, and how clock changes affect them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from careen.core.facts.windows import Cron, Dates, NamedWindow
from careen.core.windows import cron, openings

BERLIN = ZoneInfo("Europe/Berlin")


def a_window(expression: str, hours: float, *excluded: Dates, zone: ZoneInfo = BERLIN) -> NamedWindow:
    return NamedWindow(name="x", opens=Cron(expression=expression, seconds=hours * 3600, zone=zone), excluded=excluded)


def opening_times(window: NamedWindow, begin: str, *, hours: int) -> list[tuple[str, str]]:
    """Return the times in UTC at which the window opens and closes in the `hours` after `begin`."""
    at = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    end, changes = at + timedelta(hours=hours), []
    assert not openings.is_open((window,), at)
    while (change := openings.change_after((window,), at)) is not None and change < end:
        changes.append(f"{change:%d %H:%M}")
        at = change
    return list(zip(changes[::2], changes[1::2], strict=True))


@pytest.mark.parametrize(
    ("window", "begin", "expected"),
    [
        pytest.param(
            a_window("0 2 * * SUN", 4),
            "2026-03-04T12:00",
            [("08 01:00", "08 05:00")],
            id="two o'clock on Sundays in winter time",
        ),
        pytest.param(
            a_window("30 2 29 3 *", 1),
            "2026-03-25T12:00",
            [("29 01:00", "29 02:00")],
            id="the window starts in the hour that the clock skips",
        ),
        pytest.param(
            a_window("30 2 25 10 *", 1),
            "2026-10-20T12:00",
            [("25 00:30", "25 01:30")],
            id="the window starts in the hour that occurs twice",
        ),
        pytest.param(
            a_window("0 1 25 10 *", 4),
            "2026-10-20T12:00",
            [("24 23:00", "25 03:00")],
            id="a window of four hours on the night when an hour occurs twice",
        ),
        pytest.param(
            a_window("0 22 * * FRI", 48, Dates(first=date(2026, 3, 7), last=date(2026, 3, 7))),
            "2026-03-04T12:00",
            [("06 21:00", "06 23:00"), ("07 23:00", "08 21:00")],
            id="an excluded date in the middle of the window",
        ),
        pytest.param(
            a_window("0 22 * * FRI", 48, Dates(first=date(2026, 3, 6), last=date(2026, 3, 6))),
            "2026-03-04T12:00",
            [],
            id="the window starts on an excluded date",
        ),
        pytest.param(
            a_window("0 */2 5 3 *", 3, zone=ZoneInfo("UTC")),
            "2026-03-04T12:00",
            [("05 00:00", "06 01:00")],
            id="a window that starts again before it ends",
        ),
        pytest.param(a_window("0 0 29 2 *", 1), "2026-03-04T12:00", [], id="the window opens only on 29 February"),
    ],
)
def test_a_cron_window_is_open_at_the_expected_times(
    window: NamedWindow, begin: str, expected: list[tuple[str, str]]
) -> None:
    assert opening_times(window, begin, hours=7 * 24) == expected


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("0 2 * * SUN#1", ""),
        ("0 2 L * *", ""),
        ("0 2 * *", "five fields"),
        ("0 0 2 * * *", "five fields"),
        ("@daily", "five fields"),
        ("60 2 * * *", "Bad minute"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("*/0 2 * * *", "Bad minute"),
        (f"{'9' * 100} 2 * * *", "Bad minute"),
        (f"{'9' * 300} 2 * * *", "longer than 200"),
        ("٣ 2 * * *", "has characters"),
        ("0 0 31 2,4 *", "Bad day-of-month"),
        ("", "five fields"),
        ("0 0 LW/2 * 1#2/3", "Bad day-of-week"),
    ],
)
def test_an_invalid_cron_expression_is_refused(expression: str, says: str) -> None:
    refused = cron.refusal(expression)
    assert says in refused if says else refused == ""


FIELDS = st.tuples(
    st.sampled_from(["0", "30", "*/20", "5,45", "59"]),
    st.sampled_from(["*", "2", "1-3", "*/6", "23", "0", "2,3"]),
    st.sampled_from(["*", "1", "25-31", "L"]),
    st.sampled_from(["*", "3", "10", "3,10"]),
    st.sampled_from(["*", "SUN", "MON-FRI", "SUN#L".replace("#L", "L"), "6#2"]),
).map(lambda fields: " ".join(fields).replace("SUNL", "0L"))
# Around both changes of the clock, where cron is hardest; in Lord Howe they are half an hour long.
INSTANTS = st.one_of(
    st.integers(0, 72 * 60).map(lambda minutes: datetime(2026, 3, 28, tzinfo=UTC) + timedelta(minutes=minutes)),
    st.integers(0, 72 * 60).map(lambda minutes: datetime(2026, 10, 24, tzinfo=UTC) + timedelta(minutes=minutes)),
    st.integers(0, 72 * 60).map(lambda minutes: datetime(2026, 10, 3, tzinfo=UTC) + timedelta(minutes=minutes)),
)
ZONES = st.sampled_from([ZoneInfo("UTC"), BERLIN, ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")])
DATES = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 20)).map(
        lambda pair: Dates(
            first=date(2026, 1, 1) + timedelta(days=pair[0]), last=date(2026, 1, 1) + timedelta(days=sum(pair))
        )
    ),
    max_size=3,
).map(tuple)


@given(expression=FIELDS, hours=st.sampled_from([0.25, 1, 5, 30, 168]), zone=ZONES, excluded=DATES, at=INSTANTS)
@settings(max_examples=200, deadline=None)
def test_a_cron_window_agrees_with_cronsim(
    expression: str, hours: float, zone: ZoneInfo, excluded: tuple[Dates, ...], at: datetime
) -> None:
    """The library cronsim computes the times at which the window opens. The test ignores openings that are so long
    before `at` that the window has closed again."""
    window = a_window(expression, hours, *excluded, zone=zone)
    starts = []
    for start in CronSim(expression, (at - timedelta(hours=hours + 60)).astimezone(zone)):
        if start > at:
            break
        starts.append(start)
    expected = any(
        at < start.astimezone(UTC) + timedelta(hours=hours) and not window.excludes(start.date()) for start in starts
    ) and not window.excludes(at.astimezone(zone).date())
    assert openings.is_open((window,), at) is expected
