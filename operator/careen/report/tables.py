"""Text for a terminal: columns as kubectl prints them, paragraphs and ages."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from careen.core.facts.times import rfc3339
from careen.core.plain_text import LONGEST_CELL, LONGEST_LINE, json_text, one_line
from scheduler_core.sentences import first_few

GAP = "   "  # kubectl's distance between two columns
_LONGEST_PARAGRAPH = 4 * LONGEST_LINE  # several sentences
NARROWEST_LAST = 30  # narrower columns are harder to read than lines that are too long


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Columns with a header line. The last one is wrapped, so that the table fits into `width`.

    An empty cell is a dash, so that `awk` finds the same columns in every row, up to the last.
    """
    cells = [_fit_row(row) for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header) - 1)]
    left = sum(widths) + len(GAP) * len(widths)
    lines: list[str] = []
    for row in cells:
        first, *others = _folded(row[-1], None if width is None else width - left)
        lines.append(GAP.join([*(text.ljust(size) for text, size in zip(row, widths, strict=False)), first]).rstrip())
        lines.extend(" " * left + other for other in others)
    return "\n".join(lines)


def height_of(texts: Sequence[str]) -> int:
    """The number of lines."""
    return sum(text.count("\n") + 1 for text in texts)


def paragraph(text: str, *, indent: str = "", width: int | None = None) -> str:
    """Folded to `width`, every line indented. Line breaks in the text become spaces."""
    text = one_line(text, _LONGEST_PARAGRAPH)
    return "\n".join(indent + line for line in _folded(text, None if width is None else width - len(indent)))


def as_json(value: Any) -> str:
    """Indented, keys in the given order, times as RFC 3339, null for missing values."""
    return json_text(json.dumps(plain(value), indent=2, ensure_ascii=False))


def plain(value: Any) -> Any:
    """As types of JSON and YAML. An empty text becomes null, which stands for every missing value."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return rfc3339(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value) or None
    raise TypeError(f"careen cannot write a {type(value).__name__} as JSON: {value!r}")


def listed(names: Sequence[str], *, most: int = 5) -> str:
    """`a, b, c and 4 more`."""
    return first_few(names, most)


def _fit_row(row: Sequence[str]) -> list[str]:
    """One long name would push the columns of all other rows off the screen."""
    return [*(one_line(text, LONGEST_CELL) or "-" for text in row[:-1]), one_line(row[-1]) or "-"]


def _folded(text: str, width: int | None) -> list[str]:
    if width is None or width < NARROWEST_LAST:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
