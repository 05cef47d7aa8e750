"""Computes when a maintenance window with a cron expression is open. Only this module imports cronsim, and only when
such a window is first used.

Clock changes are handled as by Debian's cron, which cronsim follows. If the clock skips an hour in which the window
would open, the window opens right after the skipped hour. If the clock goes through an hour twice, the window opens the
first time. The duration is real time: four hours are four hours in every night.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta

from careen.core.facts.windows import Cron, NamedWindow

# cronsim compares local times only, so near a clock change the search starts this much earlier or later.
_NEAR_A_CLOCK_CHANGE = timedelta(hours=3)
_LONGEST_LOOK = timedelta(days=8)  # the search for the end of an open window goes no farther


def refusal(expression: str) -> str:
    """Return why this cron expression cannot define a maintenance window. Return an empty text if the
    expression can."""
    if len(expression) > 200 or not expression.isascii():
        return "the expression is longer than 200 characters, or has characters that no cron expression has"
    if len(expression.split()) != 5:
        return "the expression needs five fields: minute, hour, day of the month, month, weekday"
    from cronsim import CronSim, CronSimError

    try:
        first = next(CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC)), None)
    except (CronSimError, ValueError, TypeError, AssertionError) as error:
        return (
            f"cronsim says: {error}"
            if isinstance(error, CronSimError)
            else "cronsim cannot read a field of the expression"
        )
    return "" if first else "no date of the next 50 years matches the expression"


def is_open(window: Cron, now: datetime, named: NamedWindow) -> bool:
    """Whether the maintenance window is open at the instant `now`. The window opens at each instant that the cron
    expression matches, and stays open for its duration. The window is closed if today, or the date on which the window
    opened, is excluded."""
    if named.excludes(now.astimezone(window.zone).date()):
        return False
    return _ends(window, now, named) is not None


def change_after(window: Cron, at: datetime, named: NamedWindow) -> datetime | None:
    """Return when the maintenance window next opens or closes. Return None if an open window does not close within
    eight days, or if a closed window never opens."""
    now = is_open(window, at, named)
    instant: datetime | None = at
    while instant is not None and not (now and instant > at + _LONGEST_LOOK):
        if instant > at and is_open(window, instant, named) is not now:
            return instant
        instant = _next_instant(window, instant, named, is_open=now)
    return None


def _next_instant(window: Cron, at: datetime, named: NamedWindow, *, is_open: bool) -> datetime | None:
    """Return the next instant after `at` at which the maintenance window may open or close. Return None if it never
    does."""
    days = [dates.first if is_open else dates.after for dates in named.excluded]
    midnights = (datetime.combine(day, time(), window.zone).astimezone(UTC) for day in days)
    edge = _ends(window, at, named) if is_open else _next_start(window, at, named)
    return min((each for each in (*midnights, edge) if each is not None and each > at), default=None)


def _ends(window: Cron, at: datetime, named: NamedWindow) -> datetime | None:
    """Return when the maintenance window that is open at the instant `at` closes. Return None if the window is closed
    at that instant."""
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
    """Return the first instant after `at` that the cron expression matches and whose date is not excluded; None if
    there is none."""
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
    """Yield the instants after `at` that the cron expression matches, nearest first. With `is_backwards`, yield the
    instants up to `at` instead. Near a clock change, also yield a few instants on the other side of `at`."""
    from cronsim import CronSim

    margin = _NEAR_A_CLOCK_CHANGE if _is_near_a_clock_change(window, at) else timedelta(seconds=is_backwards)
    begin = (at + margin if is_backwards else at - margin).astimezone(window.zone)
    for start in CronSim(window.expression, begin, reverse=is_backwards):
        yield start.astimezone(UTC)


def _is_near_a_clock_change(window: Cron, at: datetime) -> bool:
    offsets = {(at + part * _NEAR_A_CLOCK_CHANGE).astimezone(window.zone).utcoffset() for part in (-1, 0, 1)}
    return len(offsets) > 1
