"""The machine-readable form of a report as YAML: the values of the JSON form, in block style.

A text that a reader could take for anything else, or that a terminal could obey, is written as in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from careen.core.plain_text import json_text
from careen.report.tables import plain

# Words that YAML 1.1 or 1.2 reads as something else than a text are quoted, and so is all that begins with no letter.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./,()-]+)*")
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")
_INDENT = "  "


def as_yaml(value: Any) -> str:
    """What `as_json` says, as YAML; a YAML reader gets the same values of both."""
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
    # As kubectl writes it: the items of a list stand below their key without an indent.
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
    """JSON writes a character beyond the first 65,536 as two escapes, YAML as one."""
    high, low = (int(half, 16) for half in pair.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"
