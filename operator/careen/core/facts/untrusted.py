"""What anybody may have written on a Node or into the lock, read without surprises: whatever cannot be
understood is None, never an exception.

One unreadable annotation must not stop the agents of other nodes, and every one of them reads every node's.
"""

from __future__ import annotations

from typing import Any

import msgspec

from careen.core.plain_text import one_line

LONGEST_TEXT = 256 * 1024  # of all annotations of an object together: apimachinery's TotalAnnotationSizeLimitB
LONGEST_SENTENCE = 1000  # of what others wrote and we repeat: a reason of 200 KB would fill our own annotations
_LONGEST_SHOWN = 60


def json_of(text: object) -> Any:
    """The value that the text holds; None for a text that is no JSON, and for `null`.

    msgspec's reader, because json's accepts what no encoder writes again: NaN, halves of surrogate pairs.
    """
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        return None
    try:
        return msgspec.json.decode(text)
    except (ValueError, OverflowError, RecursionError):
        return None


def object_of(text: object) -> dict[str, Any]:
    """The JSON object that the text holds; an empty one for everything else."""
    value = json_of(text)
    return value if isinstance(value, dict) else {}


def whole(value: object, most: int, least: int = 0) -> int | None:
    """The whole number if it lies within the bounds. `True` is none."""
    return value if type(value) is int and least <= value <= most else None


def number(value: object, most: float, least: float = 0.0) -> float | None:
    """The number if it lies within the bounds: neither infinite nor too long for a float."""
    return float(value) if type(value) in (int, float) and least <= value <= most else None  # type: ignore[operator, arg-type]


def short(text: str, longest: int = LONGEST_SENTENCE) -> str:
    """The text on one line, cut where it would be longer than anybody reads."""
    return one_line(text, longest)


def shown(value: object) -> str:
    """The value in a sentence that says why it cannot be read; long and nested ones by their kind."""
    if value is None or isinstance(value, bool | str | float):
        return short(repr(value), _LONGEST_SHOWN)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**20 else "a number of many digits"
    return "a list" if isinstance(value, list) else "an object"
