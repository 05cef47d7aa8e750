"""Computes the time line of a plan. It leaves out periods of more than 30 minutes in which no node holds a claim on the
reboot lock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

from scheduler_core.simulation.timeline import Visit
from scheduler_core.values import Value

LONGEST_PAUSE = timedelta(minutes=30)  # the time line leaves out longer pauses
MOST_TICKS = 8
_STEPS = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440, 10_080))


class Tick(Value, kw_only=True):
    """A mark on the time line, with its position in percent and its label. A narrow screen may leave the mark out."""

    percent: float
    label: str
    is_minor: bool


class Axis(Value):
    """Maps the times of a plan to percentages from 0 to 100."""

    pieces: tuple[tuple[datetime, datetime], ...]

    @classmethod
    def of(cls, visits: Sequence[Visit]) -> Axis:
        """Returns the time line that shows these visits. A visit is the time in which one node holds its claim."""
        pieces: list[tuple[datetime, datetime]] = []
        for visit in sorted(visits, key=lambda visit: visit.start):
            if pieces and visit.start - pieces[-1][1] <= LONGEST_PAUSE:
                pieces[-1] = (pieces[-1][0], max(pieces[-1][1], visit.end))
            else:
                pieces.append((visit.start, visit.end))
        return cls(tuple(pieces))

    @property
    def length(self) -> timedelta:
        """The length of the time line without the periods that it leaves out; at least one second."""
        return sum((end - start for start, end in self.pieces), timedelta()) or timedelta(seconds=1)

    @property
    def cuts(self) -> tuple[float, ...]:
        """The positions in percent at which the time line leaves out a period without claims."""
        return tuple(self.percent(start) for start, _ in self.pieces[1:])

    def percent(self, at: datetime) -> float:
        """Returns the position of the time `at` on the time line, in percent. If `at` is in a period that the time line
        leaves out, returns the position at which the period is left out."""
        before = sum((min(end, at) - start for start, end in self.pieces if start < at), timedelta())
        return round(100 * (before / self.length), 3)

    def ticks(self, zone: tzinfo) -> list[Tick]:
        """Returns the marks of the time line. At the beginning, and after each period that is left out, a mark shows
        the day. Other marks are at round times of the zone's clock, such as 22:00 and 22:10."""
        step = next((each for each in _STEPS if self.length / each <= MOST_TICKS), _STEPS[-1])
        found: list[Tick] = []
        for start, end in self.pieces:
            found.append(Tick(percent=self.percent(start), label=_with_day(start, zone), is_minor=False))
            at = _round_after(start + step / 2, step, zone)
            while at < end:
                local = at.astimezone(zone)
                label = _with_day(at, zone) if step >= timedelta(days=1) else f"{local:%H:%M}"
                found.append(Tick(percent=self.percent(at), label=label, is_minor=True))
                at += step
        return found


def _with_day(at: datetime, zone: tzinfo) -> str:
    return f"{at.astimezone(zone):%a %d %b %H:%M}"


def _round_after(at: datetime, step: timedelta, zone: tzinfo) -> datetime:
    """Returns the first time at or after `at` that is a multiple of `step` after midnight in the zone."""
    local = at.astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    missing = (local - midnight) % step
    return at if not missing else at + (step - missing)
