"""Computes when a maintenance window with weekdays and times of day is open.

A window that crosses midnight belongs to the day on which it begins: "fri 22:00–04:00" is open on Saturday until 04:00.
kured instead tests the weekday of the present instant (pkg/timewindow/timewindow.go). So with the same setting kured's
window is open on Friday 00:00–04:00 and closed on Saturday 00:00–04:00, which is not what the setting means. A window
that ends at 04:00 is open until 04:00:01, as in kured.

Local time decides. If the clock goes through an hour twice, the window is open both times. If the clock skips an hour,
the window is never open in that hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from careen.core.facts.windows import Dates, NamedWindow, Window

_DAY = timedelta(days=1)
# Weekdays repeat after seven days. If the clock skips the hour of the window on its only day, it opens a week later.
_REGULAR_DAYS = 16


def is_open(window: Window, now: datetime, named: NamedWindow | None = None) -> bool:
    """Whether the maintenance window is open at the instant `now`. `named` has the dates on which the window stays
    closed."""
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
    """Return when the maintenance window next opens or closes, to the second. Return None if the window never changes
    again, or does not change within the duration `within`."""
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
    """Yield every instant at which the maintenance window may open or close, in order. The instants cover two weeks
    from `at`. For each range of excluded dates they also cover two weeks from its first day and two weeks from the day
    after its last day. At all other times the window opens and closes in the same weekly pattern."""
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
    """Return the instant one second after the window's end time on this day, in the window's time zone. For a window
    that ends at 04:00, this is 04:00:01."""
    naive = datetime.combine(day, window.end.replace(microsecond=0)) + timedelta(seconds=1)
    return naive.replace(tzinfo=window.zone)


def _clock_change(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """Return the minute, between the two given instants, at which the zone's UTC offset changes."""
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(minutes=1):
        middle = before + timedelta(minutes=(after - before) // timedelta(minutes=2))
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == offset else (before, middle)
    return after
