"""Numbers and lists of names in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def first_few(names: Sequence[str], most: int = 3, *, separator: str = ", ") -> str:
    """ "a, b, c and 4 more"; "" for an empty list."""
    shown = separator.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def count_of(number: int, singular: str, plural: str | None = None) -> str:
    """`1 node` or `3 nodes`."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


_SHOWN_ROWS = 200  # more make a notebook slow


def html_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """For `_repr_html_`: the first rows as a table, every text escaped, and how many rows are left out."""
    every = list(rows)
    lines = [_html_row("th", headers), *(_html_row("td", row) for row in every[:_SHOWN_ROWS])]
    left = f"<p>and {len(every) - _SHOWN_ROWS} more</p>" if len(every) > _SHOWN_ROWS else ""
    return f"<table>{''.join(lines)}</table>{left}"


def _html_row(tag: str, cells: Iterable[object]) -> str:
    from html import escape  # seldom needed, and not cheap to load

    return f"<tr>{''.join(f'<{tag}>{escape(str(each))}</{tag}>' for each in cells)}</tr>"
