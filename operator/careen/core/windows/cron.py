"""When a window of a cron expression is open. The only importer of cronsim, which is imported when such a window
is first asked about.

The clock changes as for Debian's cron, which cronsim follows: an hour named in the expression that the clock
leaves out counts as the instant after it; one that the clock goes through twice counts the first time. The
duration runs in real time: four hours are four hours on every night."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta

from careen.core.windows.values import Cron, NamedWindow

# cronsim compares the hands of the clock alone, so that it is not asked about instants this near to a change.
_NEAR_A_CLOCK_CHANGE = timedelta(hours=3)
_LONGEST_LOOK = timedelta(days=8)  # an open window is followed so far: what is open for longer does not end soon


def refusal(expression: str) -> str:
    """Why this is no cron expression that windows can use; empty when it is one."""
    if len(expression) > 200 or not expression.isascii():
        return "it is longer than 200 characters, or has characters that no cron expression has"
    if len(expression.split()) != 5:
        return "it needs five fields: minute, hour, day of the month, month, weekday"
    from cronsim import CronSim, CronSimError

    try:
        first = next(CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC)), None)
    except (CronSimError, ValueError, TypeError, AssertionError) as error:
        return f"cronsim says: {error}" if isinstance(error, CronSimError) else "a field cannot be read"
    return "" if first else "no date of the next 50 years matches"


def is_open(window: Cron, now: datetime, named: NamedWindow) -> bool:
    """Whether the instant lies less than the duration after an instant of the expression."""
    if named.excludes(now.astimezone(window.zone).date()):
        return False
    return _ends(window, now, named) is not None


def change_after(window: Cron, at: datetime, named: NamedWindow) -> datetime | None:
    """When the window is first the other thing; None when an open one is not shut within eight days, or a shut
    one never opens."""
    now = is_open(window, at, named)
    instant: datetime | None = at
    while instant is not None and not (now and instant > at + _LONGEST_LOOK):
        if instant > at and is_open(window, instant, named) is not now:
            return instant
        instant = _next_instant(window, instant, named, is_open=now)
    return None


def _next_instant(window: Cron, at: datetime, named: NamedWindow, *, is_open: bool) -> datetime | None:
    """The next at which the window may change."""
    days = [dates.first if is_open else dates.after for dates in named.excluded]
    midnights = (datetime.combine(day, time(), window.zone).astimezone(UTC) for day in days)
    edge = _ends(window, at, named) if is_open else _next_start(window, at, named)
    return min((each for each in (*midnights, edge) if each is not None and each > at), default=None)


def _ends(window: Cron, at: datetime, named: NamedWindow) -> datetime | None:
    """When what began last before this instant ends; None when it has ended, or nothing began."""
    duration = timedelta(seconds=window.seconds)
    for start in _starts(window, at, is_backwards=True):
        if start > at:
            continue
        if start + duration <= at:
            return None
        if not named.excludes(start.astimezone(window.zone).date()):
            return start + duration
    return None


def _next_start(window: Cron, at: datetime, named: NamedWindow) -> datetime | None:
    """The first start after this instant on a date that is not excluded."""
    after = at
    while True:
        start = next((each for each in _starts(window, after) if each > at), None)
        if start is None:
            return None
        day = start.astimezone(window.zone).date()
        over = [dates.after for dates in named.excluded if dates.has(day)]
        if not over:
            return start
        # A second before the midnight, so that a start at midnight itself is found.
        after = datetime.combine(max(over), time(), window.zone).astimezone(UTC) - timedelta(seconds=1)
        at = max(at, after)


def _starts(window: Cron, at: datetime, *, is_backwards: bool = False) -> Iterator[datetime]:
    """The starts after this instant, or those up to it, the nearest first. Near a change of the clock a few
    more."""
    from cronsim import CronSim

    margin = _NEAR_A_CLOCK_CHANGE if _is_near_a_clock_change(window, at) else timedelta(seconds=is_backwards)
    begin = (at + margin if is_backwards else at - margin).astimezone(window.zone)
    for start in CronSim(window.expression, begin, reverse=is_backwards):
        yield start.astimezone(UTC)


def _is_near_a_clock_change(window: Cron, at: datetime) -> bool:
    offsets = {(at + part * _NEAR_A_CLOCK_CHANGE).astimezone(window.zone).utcoffset() for part in (-1, 0, 1)}
    return len(offsets) > 1
