"""Windows with a cron expression. Only this module imports cronsim, and only when such a window is first used.

Clock changes are handled as by Debian's cron, which cronsim follows: in a skipped hour the window opens right after the
hour; in a repeated hour it opens the first time. The duration is real time: four hours are four hours in every night.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta

from careen.core.facts.windows import Cron, NamedWindow

# cronsim compares local times only, so near a clock change the search starts this much earlier or later.
_NEAR_A_CLOCK_CHANGE = timedelta(hours=3)
_LONGEST_LOOK = timedelta(days=8)  # the search for the end of an open window goes no farther


def refusal(expression: str) -> str:
    """Why this expression cannot define a window; "" if it can."""
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
    """Whether the window is open at `now`: opened by a match, not yet over, and neither today nor the day on which it
    opened is excluded."""
    if named.excludes(now.astimezone(window.zone).date()):
        return False
    return _ends(window, now, named) is not None


def change_after(window: Cron, at: datetime, named: NamedWindow) -> datetime | None:
    """When the window next opens or closes; None if it stays open for eight days, or never opens."""
    now = is_open(window, at, named)
    instant: datetime | None = at
    while instant is not None and not (now and instant > at + _LONGEST_LOOK):
        if instant > at and is_open(window, instant, named) is not now:
            return instant
        instant = _next_instant(window, instant, named, is_open=now)
    return None


def _next_instant(window: Cron, at: datetime, named: NamedWindow, *, is_open: bool) -> datetime | None:
    """The next instant after `at` at which the window may open or close; None if it never does."""
    days = [dates.first if is_open else dates.after for dates in named.excluded]
    midnights = (datetime.combine(day, time(), window.zone).astimezone(UTC) for day in days)
    edge = _ends(window, at, named) if is_open else _next_start(window, at, named)
    return min((each for each in (*midnights, edge) if each is not None and each > at), default=None)


def _ends(window: Cron, at: datetime, named: NamedWindow) -> datetime | None:
    """When the window that is open at `at` closes; None if it is closed."""
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
    """The first match after `at` on a date that is not excluded; None if there is none."""
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
    """The matches after `at`, nearest first; with `is_backwards` those up to `at`. Near a clock change also a few on
    the other side of `at`."""
    from cronsim import CronSim

    margin = _NEAR_A_CLOCK_CHANGE if _is_near_a_clock_change(window, at) else timedelta(seconds=is_backwards)
    begin = (at + margin if is_backwards else at - margin).astimezone(window.zone)
    for start in CronSim(window.expression, begin, reverse=is_backwards):
        yield start.astimezone(UTC)


def _is_near_a_clock_change(window: Cron, at: datetime) -> bool:
    offsets = {(at + part * _NEAR_A_CLOCK_CHANGE).astimezone(window.zone).utcoffset() for part in (-1, 0, 1)}
    return len(offsets) > 1
