"""Maintenance windows of days and times: around midnight, in other time zones, and on days with a clock change."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from careen.core.facts.windows import Dates, NamedWindow, Window
from careen.core.windows import daily, openings
from tests.careen.core.builders import NOW

FRIDAY_NIGHT = Window(days=frozenset({4}), start=time(22), end=time(4))
OFFICE = Window(days=frozenset(range(5)), start=time(9), end=time(17))


def at(day: int, text: str) -> datetime:
    """Return this time on this day of March 2026, in UTC. March 1 is a Sunday, so day 6 is a Friday."""
    return datetime.fromisoformat(f"2026-03-{day:02}T{text}").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("window", "now", "is_open"),
    [
        pytest.param(Window(), at(1, "23:59:59.999999"), True, id="the default window is open until midnight"),
        pytest.param(OFFICE, at(6, "09:00"), True, id="the start is part of the window"),
        pytest.param(OFFICE, at(6, "08:59:59"), False, id="a second before the start of the window"),
        pytest.param(OFFICE, at(6, "17:00"), True, id="the end is part of the window"),
        pytest.param(OFFICE, at(6, "17:00:01"), False, id="a second after the end of the window"),
        pytest.param(OFFICE, at(7, "12:00"), False, id="a day without a window"),
        pytest.param(FRIDAY_NIGHT, at(6, "22:00"), True, id="the window of Friday night is open on Friday at 22:00"),
        pytest.param(FRIDAY_NIGHT, at(7, "03:59"), True, id="the window of Friday night is open on Saturday at 03:59"),
        pytest.param(
            FRIDAY_NIGHT, at(7, "04:01"), False, id="the window of Friday night is closed on Saturday at 04:01"
        ),
        pytest.param(FRIDAY_NIGHT, at(6, "03:00"), False, id="the window of Friday night is closed on Friday at 03:00"),
        pytest.param(FRIDAY_NIGHT, at(7, "22:30"), False, id="the window of Friday night is closed on Saturday night"),
        pytest.param(
            Window(start=time(9), end=time(9)),
            at(6, "09:01"),
            False,
            id="a window whose start equals its end is open for a second",
        ),
        pytest.param(Window(days=frozenset()), at(6, "12:00"), False, id="a window without days is never open"),
        pytest.param(
            Window(days=frozenset({4}), zone=ZoneInfo("Asia/Tokyo")),
            at(5, "15:00"),
            True,
            id="a window on Fridays in Tokyo is open while it is still Thursday in UTC",
        ),
        pytest.param(
            Window(start=time(2), end=time(4), zone=ZoneInfo("Europe/Berlin")),
            at(29, "01:30"),
            True,
            id="half past three on the night when the clock skips an hour",
        ),
        pytest.param(
            Window(start=time(2), end=time(3), zone=ZoneInfo("Europe/Berlin")),
            at(29, "01:30"),
            False,
            id="a window in the hour that the clock skips does not open",
        ),
    ],
)
def test_a_daily_window_is_open_at_the_expected_times(window: Window, now: datetime, is_open: bool) -> None:
    assert daily.is_open(window, now) is is_open


TIMES = st.builds(
    time, st.integers(0, 23), st.integers(0, 59), st.one_of(st.just(0), st.integers(0, 59))
)  # as settings can say them


@given(st.integers(0, 35 * 86400), TIMES, TIMES, st.integers(1, 90), st.sampled_from(["UTC", "Europe/Berlin"]))
def test_the_reported_next_opening_is_the_first_time_at_which_the_window_is_open(
    later: int, start: time, end: time, within: int, zone: str
) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=later)  # summer time begins meanwhile
    window = Window(start=start, end=end, zone=ZoneInfo(zone))
    found = openings.opens_within((NamedWindow(name="", opens=window),), now, within)
    instants = [daily.is_open(window, now + timedelta(seconds=second)) for second in range(within + 1)]
    if instants[0] or not any(instants):
        assert found is None
    else:
        assert found == instants.index(True)


def test_a_window_reports_that_it_opens_in_ten_seconds() -> None:
    window = Window(start=time(22, 0), end=time(23, 0), zone=ZoneInfo("UTC"))
    assert (
        openings.opens_within((NamedWindow(name="", opens=window),), datetime(2026, 3, 4, 21, 59, 50, tzinfo=UTC), 30)
        == 10
    )
    assert (
        openings.opens_within((NamedWindow(name="", opens=window),), datetime(2026, 3, 4, 21, 59, 50, tzinfo=UTC), 9)
        is None
    )
    assert (
        openings.opens_within((NamedWindow(name="", opens=window),), datetime(2026, 3, 4, 22, 0, tzinfo=UTC), 30)
        is None
    )


@pytest.mark.parametrize(
    ("window", "at", "expected"),
    [
        (Window(), "2026-03-04T12:00:00", None),
        (Window(days=frozenset()), "2026-03-04T12:00:00", None),
        (Window(start=time(22, 0), end=time(2, 0)), "2026-03-04T12:00:30", "2026-03-04T22:00:00"),
        (Window(start=time(22, 0), end=time(2, 0)), "2026-03-04T23:00:00", "2026-03-05T02:00:01"),
        (Window(start=time(12, 5, 10), end=time(12, 5, 50)), "2026-03-04T12:00:00", "2026-03-04T12:05:10"),
        (Window(end=time(23, 59)), "2026-03-04T12:00:00", "2026-03-04T23:59:01"),  # shut for a minute less a second
        (Window(end=time(23, 59)), "2026-03-04T23:59:30", "2026-03-05T00:00:00"),
        (Window(days=frozenset({6}), start=time(3, 0), end=time(4, 0)), "2026-03-04T12:00:00", "2026-03-08T03:00:00"),
        (
            Window(start=time(2, 30), end=time(4, 0), zone=ZoneInfo("Europe/Berlin")),
            "2026-03-28T12:00:00",
            "2026-03-29T01:00:00",
        ),  # 02:30 does not exist that day
    ],
)
def test_the_next_change_of_a_window_is_its_opening_or_closing(window: Window, at: str, expected: str | None) -> None:
    found = daily.change_after(window, datetime.fromisoformat(at).replace(tzinfo=UTC))
    assert found == (datetime.fromisoformat(expected).replace(tzinfo=UTC) if expected else None)


# `daily.change_after` reports the instant at which the maintenance window next opens or closes. Before that instant, an
# open window must stay open, and a closed window must stay closed. At that instant, the window must open or close. If
# `daily.change_after` reports no instant, the window must stay as it is for the next seven days.
@given(
    start=st.integers(0, 1439),
    length=st.integers(2, 1438),
    days=st.frozensets(st.integers(0, 6)),
    at=st.integers(0, 365 * 86_400).map(lambda seconds: NOW + timedelta(seconds=seconds)),
)
@settings(max_examples=40, deadline=None)
def test_a_window_does_not_change_before_its_next_reported_change(
    start: int, length: int, days: frozenset[int], at: datetime
) -> None:
    first, last = divmod(start, 60), divmod((start + length) % 1440, 60)
    window = Window(days=days, start=time(*first), end=time(*last))
    change = daily.change_after(window, at)
    until = change or at + timedelta(days=7)
    assert change is None or daily.is_open(window, change) is not daily.is_open(window, at)
    assert {daily.is_open(window, at + (until - at) * part / 200) for part in range(200)} == {daily.is_open(window, at)}


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("window", "stretches"),
    [
        pytest.param(
            Window(start=time(2, 10), end=time(2, 50), zone=BERLIN),
            [],
            id="the window is inside the hour that the clock skips",
        ),
        pytest.param(
            Window(start=time(1, 30), end=time(2, 30), zone=BERLIN),
            [("00:30:00", "01:00:00")],
            id="the window ends in the skipped hour",
        ),
        pytest.param(
            Window(start=time(2, 30), end=time(3, 30), zone=BERLIN),
            [("01:00:00", "01:30:01")],
            id="the window begins in the skipped hour",
        ),
    ],
)
def test_a_window_on_the_day_the_clock_goes_forward_keeps_its_local_times(
    window: Window, stretches: list[tuple[str, str]]
) -> None:
    assert _open(window, datetime(2026, 3, 28, 23, tzinfo=UTC), hours=23) == stretches


@pytest.mark.parametrize(
    ("window", "stretches"),
    [
        pytest.param(
            Window(start=time(2, 10), end=time(2, 50), zone=BERLIN),
            [("00:10:00", "00:50:01"), ("01:10:00", "01:50:01")],
            id="the window is inside the repeated hour and opens twice",
        ),
        pytest.param(
            Window(start=time(1, 30), end=time(2, 30), zone=BERLIN),
            [("23:30:00", "00:30:01"), ("01:00:00", "01:30:01")],
            id="the window ends in the repeated hour and opens twice",
        ),
        pytest.param(
            Window(start=time(1), end=time(4), zone=BERLIN),
            [("23:00:00", "03:00:01")],
            id="the window contains the repeated hour and opens once",
        ),
    ],
)
def test_a_window_on_the_day_the_clock_goes_back_keeps_its_local_times(
    window: Window, stretches: list[tuple[str, str]]
) -> None:
    assert _open(window, datetime(2026, 10, 24, 22, tzinfo=UTC), hours=25) == stretches


def _open(window: Window, begin: datetime, *, hours: int) -> list[tuple[str, str]]:
    """Return the periods in UTC in which the window is open. Check for every second that the window opens and closes
    exactly at the reported times."""
    end = begin + timedelta(hours=hours)
    changes, at = [], begin
    while (change := daily.change_after(window, at)) is not None and change < end:
        changes.append(change)
        at = change
    seconds = [begin + timedelta(seconds=second) for second in range(hours * 3600)]
    states = [daily.is_open(window, each) for each in seconds]
    assert changes == [seconds[number] for number in range(1, len(states)) if states[number] is not states[number - 1]]
    return [(f"{a:%H:%M:%S}", f"{b:%H:%M:%S}") for a, b in zip(changes[::2], changes[1::2], strict=True)]


CHRISTMAS = (Dates(first=date(2026, 12, 24), last=date(2026, 12, 26)),)
NIGHTS = NamedWindow(name="nights", opens=Window(start=time(22), end=time(4)), excluded=CHRISTMAS)


@pytest.mark.parametrize(
    ("now", "is_open"),
    [
        ("2026-12-23T23:00:00", True),
        ("2026-12-24T03:00:00", False),  # the window is closed on an excluded date from midnight on
        ("2026-12-26T23:00:00", False),
        ("2026-12-27T03:00:00", False),  # a window that would begin on an excluded date does not open
        ("2026-12-27T22:00:00", True),
    ],
)
def test_a_window_is_closed_on_excluded_dates(now: str, is_open: bool) -> None:
    assert openings.is_open((NIGHTS,), datetime.fromisoformat(now).replace(tzinfo=UTC)) is is_open


def test_a_window_stays_closed_through_years_of_excluded_dates() -> None:
    excluded = (
        Dates(first=date(2026, 3, 5), last=date(2031, 12, 31)),
        Dates(first=date(2032, 1, 1), last=date(2032, 1, 1)),
    )
    window = NamedWindow(name="x", opens=Window(), excluded=excluded)
    shut = openings.change_after((window,), datetime(2026, 3, 4, 12, tzinfo=UTC))
    assert shut == datetime(2026, 3, 5, tzinfo=UTC)
    assert openings.change_after((window,), shut) == datetime(2032, 1, 2, tzinfo=UTC)
