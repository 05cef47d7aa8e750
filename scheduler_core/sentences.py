"""Numbers and lists of names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def first_few(names: Sequence[str], most: int = 3, *, separator: str = ", ") -> str:
    """ "a, b, c and 4 more"; "" for an empty list."""
    shown = separator.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def count_of(number: int, singular: str, plural: str | None = None) -> str:
    """`1 node` or `3 nodes`."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
