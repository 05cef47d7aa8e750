"""Builds the HTML of the page. It escapes all text that comes from the cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape as _escaped_for_html

from careen.core.plain_text import one_line


def escape(text: str) -> str:
    """Escapes the markup in a text, and removes characters that reorder or hide other characters."""
    return _escaped_for_html(one_line(text))


def paragraph(text: str, css: str = "") -> str:
    """One paragraph of text."""
    return f'<p class="{css}">{escape(text)}</p>' if css else f"<p>{escape(text)}</p>"


def section(name: str, title: str, inside: str) -> str:
    """A section of the page with its title; `inside` is HTML."""
    return f'<section class="{name}">\n<h2>{escape(title)}</h2>\n{inside}\n</section>'


def folded(title: str, inside: str) -> str:
    """HTML that appears when the reader clicks its title."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table. Columns of whole numbers are aligned to the right."""

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
    """One of careen's own sentences as HTML. Text in backticks becomes code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
