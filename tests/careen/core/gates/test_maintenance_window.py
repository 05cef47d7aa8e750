"""The maintenance window, around midnight, in other zones, and waived by a person."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from careen.core.facts import keys
from careen.core.facts.policy import Window
from careen.core.facts.reasons import Code
from careen.core.gates import maintenance_window
from careen.core.gates.question import When
from tests.careen.core.builders import NOW, a_node, a_policy, a_situation

FRIDAY_NIGHT = Window(days=frozenset({4}), start=time(22), end=time(4))
OFFICE = Window(days=frozenset(range(5)), start=time(9), end=time(17))


def at(day: int, text: str) -> datetime:
    """March 2026 begins on a Sunday; day 6 is a Friday."""
    return datetime.fromisoformat(f"2026-03-{day:02}T{text}").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("window", "now", "is_open"),
    [
        pytest.param(Window(), at(1, "23:59:59.999999"), True, id="the default has no gap before midnight"),
        pytest.param(OFFICE, at(6, "09:00"), True, id="the start belongs to it"),
        pytest.param(OFFICE, at(6, "08:59:59"), False, id="a second before"),
        pytest.param(OFFICE, at(6, "17:00"), True, id="the end belongs to it"),
        pytest.param(OFFICE, at(6, "17:00:01"), False, id="a second after"),
        pytest.param(OFFICE, at(7, "12:00"), False, id="another day"),
        pytest.param(FRIDAY_NIGHT, at(6, "22:00"), True, id="Friday night"),
        pytest.param(FRIDAY_NIGHT, at(7, "03:59"), True, id="Saturday before dawn belongs to Friday's window"),
        pytest.param(FRIDAY_NIGHT, at(7, "04:01"), False, id="Saturday morning"),
        pytest.param(FRIDAY_NIGHT, at(6, "03:00"), False, id="Friday before dawn belongs to Thursday's"),
        pytest.param(FRIDAY_NIGHT, at(7, "22:30"), False, id="Saturday night"),
        pytest.param(
            Window(start=time(9), end=time(9)),
            at(6, "09:01"),
            False,
            id="start and end equal: that second only, as in kured",
        ),
        pytest.param(Window(days=frozenset()), at(6, "12:00"), False, id="no day at all"),
        pytest.param(
            Window(days=frozenset({4}), zone=ZoneInfo("Asia/Tokyo")),
            at(5, "15:00"),
            True,
            id="Friday in Tokyo, Thursday in UTC",
        ),
        pytest.param(
            Window(start=time(2), end=time(4), zone=ZoneInfo("Europe/Berlin")),
            at(29, "01:30"),
            True,
            id="half past three on the night the clock jumps",
        ),
        pytest.param(
            Window(start=time(2), end=time(3), zone=ZoneInfo("Europe/Berlin")),
            at(29, "01:30"),
            False,
            id="an hour that the night leaves out",
        ),
    ],
)
def test_it_is_open(window: Window, now: datetime, is_open: bool) -> None:
    assert maintenance_window.is_open(window, now) is is_open


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, Code.OUTSIDE_WINDOW),
        ("until=2026-03-07T00:00:00Z", None),
        ("until=2026-03-06T20:00:00Z", Code.OUTSIDE_WINDOW),
        ("yes", Code.OUTSIDE_WINDOW),
        ("", Code.OUTSIDE_WINDOW),
    ],
)
def test_a_person_waives_it_until_the_instant_named(annotation: str | None, expected: Code | None) -> None:
    node = a_node(annotations={} if annotation is None else {keys.REBOOT_NOW: annotation})
    refused = maintenance_window.ask(a_situation(node, a_policy(window=OFFICE), now=at(6, "21:00")), When.READY)
    assert (refused.code if refused else None) is expected


def test_the_refusal_names_the_window_and_not_the_time_so_that_it_need_not_be_written_again() -> None:
    refused = maintenance_window.ask(a_situation(policy=a_policy(window=FRIDAY_NIGHT), now=at(6, "21:00")), When.READY)
    assert refused is not None
    assert refused.sentence == "outside the maintenance window fri 22:00–04:00 UTC"


TIMES = st.builds(
    time, st.integers(0, 23), st.integers(0, 59), st.one_of(st.just(0), st.integers(0, 59))
)  # as settings can say them


@given(st.integers(0, 35 * 86400), TIMES, TIMES, st.integers(1, 90), st.sampled_from(["UTC", "Europe/Berlin"]))
def test_how_soon_a_window_opens_is_when_it_is_first_open(
    later: int, start: time, end: time, within: int, zone: str
) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=later)  # summer time begins meanwhile
    window = Window(start=start, end=end, zone=ZoneInfo(zone))
    found = maintenance_window.opens_within(window, now, within)
    instants = [maintenance_window.is_open(window, now + timedelta(seconds=second)) for second in range(within + 1)]
    if instants[0] or not any(instants):
        assert found is None
    else:
        assert found == instants.index(True)


def test_a_window_that_opens_in_ten_seconds() -> None:
    window = Window(start=time(22, 0), end=time(23, 0), zone=ZoneInfo("UTC"))
    assert maintenance_window.opens_within(window, datetime(2026, 3, 4, 21, 59, 50, tzinfo=UTC), 30) == 10
    assert maintenance_window.opens_within(window, datetime(2026, 3, 4, 21, 59, 50, tzinfo=UTC), 9) is None
    assert maintenance_window.opens_within(window, datetime(2026, 3, 4, 22, 0, tzinfo=UTC), 30) is None


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
def test_when_a_window_changes(window: Window, at: str, expected: str | None) -> None:
    found = maintenance_window.change_after(window, datetime.fromisoformat(at).replace(tzinfo=UTC))
    assert found == (datetime.fromisoformat(expected).replace(tzinfo=UTC) if expected else None)


@given(
    start=st.integers(0, 1439),
    length=st.integers(2, 1438),
    days=st.frozensets(st.integers(0, 6)),
    at=st.integers(0, 365 * 86_400).map(lambda seconds: NOW + timedelta(seconds=seconds)),
)
@settings(max_examples=40, deadline=None)
def test_until_a_window_changes_it_does_not(start: int, length: int, days: frozenset[int], at: datetime) -> None:
    first, last = divmod(start, 60), divmod((start + length) % 1440, 60)
    window = Window(days=days, start=time(*first), end=time(*last))
    change = maintenance_window.change_after(window, at)
    until = change or at + timedelta(days=7)
    assert change is None or maintenance_window.is_open(window, change) is not maintenance_window.is_open(window, at)
    assert {maintenance_window.is_open(window, at + (until - at) * part / 200) for part in range(200)} == {
        maintenance_window.is_open(window, at)
    }
