"""Instants as text: RFC 3339 in UTC, the way everything careen writes on objects says when.

Anybody may have written what is read here. An instant outside the years 1970 to 2200 is none: it is a mistake,
and Python's own years end at 9999, so that the next sum of such an instant and an interval, or a look at it in
another zone, would be an error."""

from __future__ import annotations

from datetime import UTC, datetime

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def rfc3339(at: datetime, timespec: str = "seconds") -> str:
    """The instant in UTC, to the second unless `timespec` (as of `isoformat`) says otherwise: 2026-11-21T08:15:00Z."""
    return at.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def from_rfc3339(text: object) -> datetime | None:
    """The instant that the text names, in UTC; None when it names none. A text without an offset is none, and
    so is whatever is no text."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return bounded(at) if at.tzinfo is not None else None


def span(seconds: float) -> str:
    """A length of time for people, as settings write it: 10m, 1h30m, 90s as 1m30s, 0.5s. It loses nothing above a
    second; below, three digits are left."""
    if seconds < 1:
        return f"{seconds:.3g}s"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return "".join(f"{amount}{unit}" for amount, unit in ((hours, "h"), (minute, "m"), (second, "s")) if amount)


def bounded(at: datetime) -> datetime | None:
    """The instant in UTC, or None outside the years that are read; one without a zone is taken for UTC."""
    known = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    try:
        return known.astimezone(UTC) if EARLIEST <= known <= LATEST else None
    except OverflowError:
        return None
