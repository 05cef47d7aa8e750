"""Lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def first_few(names: Sequence[str], most: int = 3, *, separator: str = ", ") -> str:
    """The first `most` of them, and how many more there are: "a, b, c and 4 more". Empty where there are none."""
    shown = separator.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
