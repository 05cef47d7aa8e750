"""Instants as RFC 3339 text in UTC, the form of all that careen writes on objects.

Anyone may have written what careen reads, so an instant outside of the years 1970 to 2200 is unreadable: arithmetic
near Python's last year, 9999, could raise an error.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def rfc3339(at: datetime, timespec: str = "seconds") -> str:
    """Such as 2026-11-21T08:15:00Z; `timespec` as in `isoformat`."""
    return at.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def from_rfc3339(text: object) -> datetime | None:
    """The instant in UTC; None for anything but text with a valid instant and a UTC offset."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return bounded(at) if at.tzinfo is not None else None


def span(seconds: float) -> str:
    """A duration as in settings: 10m, 1h30m, 1m30s, 0.5s. Below one second it has three digits, else whole seconds."""
    if seconds < 1:
        return f"{seconds:.3g}s"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return "".join(f"{amount}{unit}" for amount, unit in ((hours, "h"), (minute, "m"), (second, "s")) if amount)


def bounded(at: datetime) -> datetime | None:
    """The instant in UTC, None outside of the years 1970 to 2200. Without a zone it is read as UTC."""
    known = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    try:
        if not EARLIEST <= known <= LATEST:
            return None
        return known if known.tzinfo is UTC else known.astimezone(UTC)
    except OverflowError:
        return None


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, in the two largest units: 4d3h, 3h12m, 12m5s, 5s; a dash if unknown. The future gives 0s, because
    two clocks may differ."""
    return "-" if since is None else duration(now - since)


def duration(span: timedelta) -> str:
    """In its two largest units, like `age`."""
    seconds = max(0, int(span.total_seconds()))
    days, seconds = divmod(seconds, 86400)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    parts = [f"{amount}{unit}" for amount, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s"))]
    first = next((place for place, part in enumerate(parts) if part[0] != "0"), 3)
    return "".join(part for part in parts[first : first + 2] if part[0] != "0") or "0s"
