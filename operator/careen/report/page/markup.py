"""Builds the page's HTML, and escapes all text from the cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape as _escaped_for_html

from careen.core.plain_text import one_line


def escape(text: str) -> str:
    """Escapes markup, and removes characters that reorder or hide others."""
    return _escaped_for_html(one_line(text))


def paragraph(text: str, css: str = "") -> str:
    """A paragraph of escaped text."""
    return f'<p class="{css}">{escape(text)}</p>' if css else f"<p>{escape(text)}</p>"


def section(name: str, title: str, inside: str) -> str:
    """A section with its title; `inside` is HTML."""
    return f'<section class="{name}">\n<h2>{escape(title)}</h2>\n{inside}\n</section>'


def folded(title: str, inside: str) -> str:
    """HTML that a click on its title shows."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns of whole numbers are aligned to the right."""

    def cell(tag: str, value: object, column: int) -> str:
        is_number = bool(rows) and isinstance(rows[0][column], int)
        css = ' class="n"' if is_number else ""
        return f"<{tag}{css}>{escape(str(value))}</{tag}>"

    head = "".join(cell("th", name, column) for column, name in enumerate(header))
    body = "\n".join(
        "<tr>" + "".join(cell("td", value, column) for column, value in enumerate(row)) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def with_code(text: str) -> str:
    """One of careen's own sentences. Backticks become code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
