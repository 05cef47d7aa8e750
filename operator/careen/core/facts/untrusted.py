"""Reads values that anyone may have written on a Node or into the lock. What cannot be understood is None; nothing
raises: every agent reads the annotations of every node, and one unreadable annotation must not stop them all."""

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
    """The JSON value of the text. None for `null`, for no JSON, and for JSON deeper than 50 levels, which careen might
    not be able to write again.

    The decoder is msgspec's: the module json accepts values that no encoder can write (NaN, halves of surrogate pairs).
    """
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TEXT:
        return None
    try:
        value = msgspec.json.decode(text)
    except (ValueError, OverflowError, RecursionError):
        return None
    # each level opens a bracket, and counting the brackets is much cheaper than walking
    is_shallow = text.count("[") + text.count("{") <= _DEEPEST or _is_shallow(value)
    return value if is_shallow else None


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
    """The JSON object in the text; empty if it holds anything else."""
    value = json_of(text)
    return value if isinstance(value, dict) else {}


def fields_of(record: object, kind: type[T]) -> tuple[T, tuple[str, ...]]:
    """A `kind` with the values of a JSON object, and the keys whose values have a wrong type.

    Those, missing fields and `null` get their defaults. Unknown fields, such as a newer release's, are ignored.
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
    """The value if it is a whole number within the bounds, else None. `True` is none."""
    return value if type(value) is int and least <= value <= most else None


def number(value: object, most: float, least: float = 0.0) -> float | None:
    """The value as a float if it is a number within the bounds, else None. The bounds exclude infinities and huge
    integers."""
    return float(value) if type(value) in (int, float) and least <= value <= most else None  # type: ignore[operator, arg-type]


def short(text: str, longest: int = LONGEST_SENTENCE) -> str:
    """The text on one line, cut to `longest` characters."""
    return one_line(text, longest)


def shown(value: object) -> str:
    """A value that careen cannot use, for a sentence; of a list, an object or a huge number only its kind."""
    if value is None or isinstance(value, bool | str | float):
        return short(repr(value), _LONGEST_SHOWN)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**20 else "a number with many digits"
    return "a list" if isinstance(value, list) else "an object"
