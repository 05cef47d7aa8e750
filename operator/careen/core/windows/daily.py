"""Windows with weekdays and times of day.

A window that crosses midnight belongs to the day on which it begins: "fri 22:00–04:00" is open on Saturday until 04:00.
kured tests the weekday of the present instant (pkg/timewindow/timewindow.go), so its window is open on Friday
00:00–04:00 and closed on Saturday 00:00–04:00, which is not what the setting means. A window that ends at 04:00 is open
until 04:00:01, as in kured.

Local time decides: in a repeated hour the window is open both times; in a skipped hour it is never open.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from careen.core.facts.windows import Dates, NamedWindow, Window

_DAY = timedelta(days=1)
# Weekdays repeat after seven days. If the clock skips the hour of the window on its only day, it opens a week later.
_REGULAR_DAYS = 16


def is_open(window: Window, now: datetime, named: NamedWindow | None = None) -> bool:
    """Whether the window is open at `now`; `named` has the dates on which it stays closed."""
    local = now.astimezone(window.zone)
    at, today = local.time().replace(microsecond=0), local.date()
    if window.start <= window.end:
        if not window.start <= at <= window.end:
            return False
        first = today
    elif at >= window.start:
        first = today
    elif at <= window.end:
        first = today - _DAY
    else:
        return False
    return first.weekday() in window.days and not (named and (named.excludes(first) or named.excludes(today)))


def change_after(
    window: Window, at: datetime, named: NamedWindow | None = None, *, within: timedelta | None = None
) -> datetime | None:
    """When the window next opens or closes, to the second; None if it does not, or not `within` this time."""
    if not window.days:
        return None
    now = is_open(window, at, named)
    for instant in _instants_of_change(window, at, named.excluded if named else ()):
        if within is not None and instant > at + within:
            return None
        if instant > at and is_open(window, instant, named) is not now:
            return instant
    return None


def _instants_of_change(window: Window, at: datetime, excluded: tuple[Dates, ...]) -> Iterator[datetime]:
    """Every instant at which the window may open or close, in order, for two weeks from `at` and, for each range of
    excluded dates, for two weeks from its first day and from the day after it. At other times the pattern is weekly."""
    today = at.astimezone(window.zone).date() - _DAY
    breaks = {day for dates in excluded for day in (dates.first, dates.after) if day > today}
    begins = [today, *sorted(breaks)]
    for first, until in zip(begins, [*begins[1:], date.max], strict=True):
        days = [first + number * _DAY for number in range(-1, _REGULAR_DAYS) if first + number * _DAY <= until]
        yield from sorted({instant for day in days for instant in _of_day(window, day)})


def _of_day(window: Window, day: date) -> Iterator[datetime]:
    midnight, next_midnight = (datetime.combine(each, time(), window.zone) for each in (day, day + _DAY))
    for wall in (midnight, datetime.combine(day, window.start, window.zone), _after_end(window, day)):
        yield wall.replace(fold=0).astimezone(UTC)
        yield wall.replace(fold=1).astimezone(UTC)
    if midnight.utcoffset() != next_midnight.utcoffset():
        yield _clock_change(midnight.astimezone(UTC), next_midnight.astimezone(UTC), window.zone)


def _after_end(window: Window, day: date) -> datetime:
    """One second after the window's end on this day: 04:00:01 for a window that ends at 04:00."""
    naive = datetime.combine(day, window.end.replace(microsecond=0)) + timedelta(seconds=1)
    return naive.replace(tzinfo=window.zone)


def _clock_change(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The minute between these instants at which the zone's UTC offset changes."""
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(minutes=1):
        middle = before + timedelta(minutes=(after - before) // timedelta(minutes=2))
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == offset else (before, middle)
    return after
