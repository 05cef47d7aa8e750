"""Instants as text: RFC 3339 in UTC, the way everything careen writes on objects says when."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(at: datetime) -> str:
    """The instant in UTC, to the second: 2026-11-21T08:15:00Z."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def from_rfc3339(text: str) -> datetime | None:
    """The instant that the text names, or None when it names none; a text without an offset is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
