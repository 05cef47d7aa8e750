"""Windows as settings write them. When they are open is in `daily.py` and `cron.py`."""

from __future__ import annotations

from datetime import UTC, date, time, timedelta, tzinfo

from careen.core.facts.selectors import Selector
from scheduler_core.values import Value


class Window(Value, kw_only=True):
    """kured's maintenance window: weekdays (Monday is 0), start and end of day, in one time zone."""

    days: frozenset[int] = frozenset(range(7))
    start: time = time(0, 0)
    end: time = time(23, 59, 59)
    zone: tzinfo = UTC

    @property
    def is_always_open(self) -> bool:
        """Whether it leaves out nothing, as kured's defaults do."""
        return len(self.days) == 7 and self.start == time(0, 0) and self.end >= time(23, 59, 59)


class Cron(Value, kw_only=True):
    """A window that opens at each instant of a cron expression of five fields and stays open for `seconds`."""

    expression: str
    seconds: float
    zone: tzinfo = UTC


class Dates(Value, kw_only=True):
    """Whole days of the window's zone, the first and the last included."""

    first: date
    last: date

    def has(self, day: date) -> bool:
        """Whether the day is one of them."""
        return self.first <= day <= self.last

    @property
    def after(self) -> date:
        """The first day that is not one of them any more."""
        return self.last + timedelta(days=1)


class NamedWindow(Value, kw_only=True):
    """One window of the list: when it opens, for which nodes, and on which dates it does not.

    On an excluded date it is shut from midnight to midnight; and as a window belongs to the day on which it
    begins, one that would begin on an excluded date does not open on the next day either."""

    name: str
    opens: Window | Cron
    nodes: Selector | None = None  # None: every node
    excluded: tuple[Dates, ...] = ()

    def excludes(self, day: date) -> bool:
        """Whether the date is excluded."""
        return any(dates.has(day) for dates in self.excluded)
