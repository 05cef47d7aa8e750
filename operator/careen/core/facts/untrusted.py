"""Reads values that anyone may have written on a Node or into the lock. The functions return None for a value that they
cannot understand, and never raise.

Every agent reads the annotations of every node, so one unreadable annotation must not stop the agents of other nodes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from careen.core.plain_text import one_line

T = TypeVar("T", bound=msgspec.Struct)

LONGEST_TEXT = 256 * 1024  # for all annotations of an object together: apimachinery's TotalAnnotationSizeLimitB
LONGEST_SENTENCE = 1000  # for foreign text that we repeat: a reason of 200 KB would fill our own annotations
_LONGEST_SHOWN = 60
_DEEPEST = 50  # levels of lists and objects; careen and kured write four


def json_of(text: object) -> Any:
    """Return the JSON value of the text. Return None for `null`, for text that is no JSON, and for JSON that is nested
    more than 50 levels deep: careen might not be able to write a more deeply nested value again.

    The decoder is msgspec's, because the module json accepts values that no encoder can write: NaN, halves of surrogate
    pairs.
    """
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TEXT:
        return None
    try:
        value = msgspec.json.decode(text)
    except (ValueError, OverflowError, RecursionError):
        return None
    return value if _is_shallow(value) else None


def _is_shallow(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return True
    return False


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def object_of(text: object) -> dict[str, Any]:
    """Return the JSON object in the text, or an empty object if the text holds anything else."""
    value = json_of(text)
    return value if isinstance(value, dict) else {}


def fields_of(record: object, kind: type[T]) -> tuple[T, tuple[str, ...]]:
    """Return an object of the class `kind` with the values of a JSON object, and the keys whose values have a wrong
    type.

    Fields with a wrong type, missing fields and `null` get their defaults. Unknown fields, for example those of a newer
    release, are ignored.
    """
    written = record if isinstance(record, dict) else {}
    known: dict[str, Any] = {}
    unreadable: list[str] = []
    for each in _declared(kind):
        if (value := written.get(each.encode_name)) is not None:
            try:
                known[each.name] = msgspec.convert(value, each.type)
            except msgspec.ValidationError:
                unreadable.append(each.encode_name)
    return kind(**known), tuple(unreadable)


_declared = functools.cache(msgspec.structs.fields)


def whole(value: object, most: int, least: int = 0) -> int | None:
    """Return the value if it is a whole number within the bounds, otherwise None. `True` is not a whole number here."""
    return value if type(value) is int and least <= value <= most else None


def number(value: object, most: float, least: float = 0.0) -> float | None:
    """Return the value as a float if it is a number within the bounds, otherwise None. The bounds exclude infinities
    and huge integers."""
    return float(value) if type(value) in (int, float) and least <= value <= most else None  # type: ignore[operator, arg-type]


def short(text: str, longest: int = LONGEST_SENTENCE) -> str:
    """Return the text on one line, cut to `longest` characters."""
    return one_line(text, longest)


def shown(value: object) -> str:
    """Return the value as text for a sentence that reports a value which careen cannot use. For a list, an object or a
    huge number the text only names the kind of the value."""
    if value is None or isinstance(value, bool | str | float):
        return short(repr(value), _LONGEST_SHOWN)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**20 else "a number with many digits"
    return "a list" if isinstance(value, list) else "an object"
