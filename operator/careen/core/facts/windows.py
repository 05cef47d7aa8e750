"""The types of maintenance windows. `daily.py` and `cron.py` compute when windows are open."""

from __future__ import annotations

from datetime import UTC, date, time, timedelta, tzinfo

from careen.core.facts.selectors import Selector
from scheduler_core.values import Value


class Window(Value, kw_only=True):
    """kured's maintenance window: the weekdays (Monday is 0), the time of day at which the window begins, the time of
    day at which it ends, and the time zone."""

    days: frozenset[int] = frozenset(range(7))
    start: time = time(0, 0)
    end: time = time(23, 59, 59)
    zone: tzinfo = UTC

    @property
    def is_always_open(self) -> bool:
        """Whether the window is open at all times, as with kured's defaults."""
        return len(self.days) == 7 and self.start == time(0, 0) and self.end >= time(23, 59, 59)


class Cron(Value, kw_only=True):
    """A maintenance window that opens at each instant that a cron expression of five fields matches, and stays open for
    `seconds` seconds."""

    expression: str
    seconds: float
    zone: tzinfo = UTC


class Dates(Value, kw_only=True):
    """A range of whole days in the time zone of a maintenance window, including its first and its last day."""

    first: date
    last: date

    def has(self, day: date) -> bool:
        """Whether the range of dates includes this day."""
        return self.first <= day <= self.last

    @property
    def after(self) -> date:
        """The first day after this range of dates."""
        return self.last + timedelta(days=1)


class NamedWindow(Value, kw_only=True):
    """One maintenance window of --windows: when the window opens, for which nodes, and on which dates the window stays
    closed.

    On an excluded date the window is closed from midnight to midnight. A window that crosses midnight belongs to the
    day on which it begins. So if that day is excluded, the window stays closed after midnight too.
    """

    name: str
    opens: Window | Cron
    nodes: Selector | None = None  # None: every node
    excluded: tuple[Dates, ...] = ()

    def excludes(self, day: date) -> bool:
        """Whether the window stays closed on this date."""
        return any(dates.has(day) for dates in self.excluded)
