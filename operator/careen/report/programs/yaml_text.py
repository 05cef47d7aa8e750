"""A report as YAML in block style, with the values of the JSON form. Text is quoted as in JSON if a YAML reader could
take it for another type, or if it could control a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from careen.core.plain_text import json_text
from careen.report.tables import plain

# Quoted: words that YAML 1.1 or 1.2 does not read as text, and everything that does not begin with a letter.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./,()-]+)*")
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")
_INDENT = "  "


def as_yaml(value: Any) -> str:
    """With the same values as `as_json`."""
    return "\n".join(_lines(plain(value)))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _entry(f"{_text(key)}:", each)
    elif isinstance(value, list) and value:
        for each in value:
            yield from _item(each)
    else:
        yield _scalar(value)


def _entry(key: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping | list) or not value:
        yield f"{key} {_scalar(value)}"
        return
    yield key
    # As in kubectl's output, the items of a list are not indented below their key.
    yield from (line if isinstance(value, list) else _INDENT + line for line in _lines(value))


def _item(value: Any) -> Iterator[str]:
    for place, line in enumerate(_lines(value)):
        yield ("- " if place == 0 else _INDENT) + line


def _scalar(value: Any) -> str:
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return _PAIR.sub(_one_escape, json_text(json.dumps(text, ensure_ascii=False)))


def _one_escape(pair: re.Match[str]) -> str:
    """Above U+FFFF, JSON would write two escapes, and a YAML reader would make two characters of them."""
    high, low = (int(half, 16) for half in pair.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"
