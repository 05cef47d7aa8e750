"""Several maintenance windows together. The result "some window is open" changes at the reported times and at no other
time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from careen.core.facts.selectors import Selector
from careen.core.facts.windows import Cron, Dates, NamedWindow, Window
from careen.core.windows import openings
from tests.careen.core.builders import a_policy
from tests.careen.core.windows.test_cron import DATES, FIELDS, INSTANTS, ZONES

TIMES = st.builds(time, st.integers(0, 23), st.sampled_from([0, 10, 30, 59]), st.sampled_from([0, 59]))
BY_DAYS = st.builds(Window, days=st.frozensets(st.integers(0, 6)), start=TIMES, end=TIMES, zone=ZONES)
BY_CRON = st.builds(Cron, expression=FIELDS, seconds=st.sampled_from([900.0, 7200.0, 100_000.0]), zone=ZONES)
WINDOWS = st.lists(
    st.builds(NamedWindow, name=st.just("x"), opens=st.one_of(BY_DAYS, BY_CRON), excluded=DATES), max_size=3
).map(tuple)


# `change_after` returns when the windows next open or close. Until then, `is_open` must not change.
@given(windows=WINDOWS, at=INSTANTS)
@settings(max_examples=150, deadline=None)
def test_windows_do_not_change_before_their_next_reported_change(
    windows: tuple[NamedWindow, ...], at: datetime
) -> None:
    now = openings.is_open(windows, at)
    change = openings.change_after(windows, at)
    if change is not None:
        assert change > at
        assert openings.is_open(windows, change) is not now
        assert openings.is_open(windows, change - timedelta(seconds=1)) is now
    until = min(change or at + timedelta(days=8), at + timedelta(days=8))
    step = max(timedelta(minutes=7), (until - at) / 300)
    between = [at + number * step for number in range(int((until - at) / step))]
    assert {openings.is_open(windows, each) for each in between} <= {now}


# A group of maintenance windows counts as open at an instant if at least one window of the group is open.
@given(windows=WINDOWS, at=INSTANTS)
@settings(max_examples=60, deadline=None)
def test_several_windows_are_open_while_one_of_them_is_open(windows: tuple[NamedWindow, ...], at: datetime) -> None:
    assert openings.is_open(windows, at) is any(openings.is_open((each,), at) for each in windows)


def test_two_adjoining_windows_have_one_closing_time() -> None:
    morning = NamedWindow(name="a", opens=Window(start=time(0), end=time(11, 59, 59)))
    noon = NamedWindow(name="b", opens=Cron(expression="0 12 * * *", seconds=7200))
    at = datetime(2026, 3, 4, 3, tzinfo=UTC)
    assert openings.change_after((morning, noon), at) == datetime(2026, 3, 4, 14, tzinfo=UTC)
    evening = NamedWindow(name="c", opens=Window(start=time(14), end=time(23, 59, 59)))
    assert openings.change_after((morning, noon, evening), at) is None  # never shut


@pytest.mark.parametrize(("within", "expected"), [(599, None), (600, 600.0), (10_000, 600.0)])
def test_the_next_opening_of_several_windows_is_the_earliest_opening(within: float, expected: float | None) -> None:
    windows = (
        NamedWindow(name="a", opens=Cron(expression="0 12 * * *", seconds=7200)),
        NamedWindow(name="b", opens=Window(start=time(11), end=time(11, 30))),
    )
    assert openings.opens_within(windows, datetime(2026, 3, 4, 10, 50, tzinfo=UTC), within) == expected
    assert openings.opens_within(windows, datetime(2026, 3, 4, 11, 10, tzinfo=UTC), within) is None


def test_a_node_gets_the_windows_that_select_it() -> None:
    everybody = NamedWindow(name="all", opens=Cron(expression="0 2 * * SUN", seconds=3600))
    batch = NamedWindow(name="batch", opens=Window(start=time(1), end=time(2)), nodes=Selector.parse("pool=batch"))
    policy = replace(a_policy(), windows=(everybody, batch))
    assert openings.windows_of(policy, {"pool": "batch"}) == (everybody, batch)
    assert openings.windows_of(policy, {"pool": "web"}) == (everybody,)
    assert openings.windows_of(replace(policy, windows=(batch,)), {}) == ()
    flags = Window(days=frozenset({6}), zone=ZoneInfo("Asia/Tokyo"))
    default = (NamedWindow(name="", opens=flags),)
    assert openings.windows_of(replace(policy, windows=(batch,), window=flags), {}) == default
    assert openings.windows_of(replace(policy, windows=(), window=flags), {"pool": "batch"}) == default


def test_a_window_that_excludes_all_dates_until_2999_opens_in_the_year_3000() -> None:
    excluded = (Dates(first=date(1970, 1, 1), last=date(2999, 12, 31)),)
    for opens in (Window(), Cron(expression="*/5 * * * *", seconds=60)):
        window = (NamedWindow(name="x", opens=opens, excluded=excluded),)
        opening = openings.change_after(window, datetime(2026, 3, 4, tzinfo=UTC))
        assert opening == datetime(3000, 1, 1, tzinfo=UTC)
