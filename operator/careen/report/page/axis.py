"""The time line of a plan. It leaves out periods of more than 30 minutes without a holder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

from scheduler_core.simulation.timeline import Visit
from scheduler_core.values import Value

LONGEST_PAUSE = timedelta(minutes=30)  # the time line leaves out longer pauses
MOST_TICKS = 8
_STEPS = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440, 10_080))


class Tick(Value, kw_only=True):
    """A mark on the time line. A narrow screen may leave out a minor one."""

    percent: float
    label: str
    is_minor: bool


class Axis(Value):
    """The times of a plan as percentages from 0 to 100."""

    pieces: tuple[tuple[datetime, datetime], ...]

    @classmethod
    def of(cls, visits: Sequence[Visit]) -> Axis:
        """For these visits, in each of which one node holds its claim."""
        pieces: list[tuple[datetime, datetime]] = []
        for visit in sorted(visits, key=lambda visit: visit.start):
            if pieces and visit.start - pieces[-1][1] <= LONGEST_PAUSE:
                pieces[-1] = (pieces[-1][0], max(pieces[-1][1], visit.end))
            else:
                pieces.append((visit.start, visit.end))
        return cls(tuple(pieces))

    @property
    def length(self) -> timedelta:
        """Without the periods that are left out; at least one second."""
        return sum((end - start for start, end in self.pieces), timedelta()) or timedelta(seconds=1)

    @property
    def cuts(self) -> tuple[float, ...]:
        """Where periods are left out, in percent."""
        return tuple(self.percent(start) for start, _ in self.pieces[1:])

    def percent(self, at: datetime) -> float:
        """In percent. A time in a period that is left out has the period's position."""
        before = sum((min(end, at) - start for start, end in self.pieces if start < at), timedelta())
        return round(100 * (before / self.length), 3)

    def ticks(self, zone: tzinfo) -> list[Tick]:
        """A mark with the day at the beginning and after each period that is left out; the others at round times of the
        zone's clock, such as 22:00 and 22:10."""
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
    """The next multiple of `step` after midnight in the zone, at or after `at`."""
    local = at.astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    missing = (local - midnight) % step
    return at if not missing else at + (step - missing)
