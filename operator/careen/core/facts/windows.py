"""Maintenance windows as values; `core/windows/` computes when they are open."""

from __future__ import annotations

from datetime import UTC, date, time, timedelta, tzinfo

from careen.core.facts.selectors import Selector
from scheduler_core.values import Value


class Window(Value, kw_only=True):
    """kured's maintenance window: weekdays (Monday is 0), and the times of day at which it begins and ends."""

    days: frozenset[int] = frozenset(range(7))
    start: time = time(0, 0)
    end: time = time(23, 59, 59)
    zone: tzinfo = UTC

    @property
    def is_always_open(self) -> bool:
        """As with kured's defaults."""
        return len(self.days) == 7 and self.start == time(0, 0) and self.end >= time(23, 59, 59)


class Cron(Value, kw_only=True):
    """Opens at each instant that the expression of five fields matches, and stays open for `seconds`."""

    expression: str
    seconds: float
    zone: tzinfo = UTC


class Dates(Value, kw_only=True):
    """Whole days in the window's time zone, from the first to the last."""

    first: date
    last: date

    def has(self, day: date) -> bool:
        """Whether the day is one of them."""
        return self.first <= day <= self.last

    @property
    def after(self) -> date:
        """The first day after them."""
        return self.last + timedelta(days=1)


class NamedWindow(Value, kw_only=True):
    """One window of --windows. On an excluded date it is closed from midnight to midnight; a window that crosses
    midnight belongs to the day on which it begins, so it stays closed after the midnight of an excluded day too."""

    name: str
    opens: Window | Cron
    nodes: Selector | None = None  # None: every node
    excluded: tuple[Dates, ...] = ()

    def excludes(self, day: date) -> bool:
        """Whether the window stays closed on this date."""
        return any(dates.has(day) for dates in self.excluded)
