"""One element of a list of mappings, as JSON text, with the line numbers of its fields."""

from __future__ import annotations

from collections.abc import Mapping


class ListElement(str):
    """JSON in which every value is a text, a list or a mapping: `22:00` and `2026-12-24` stay texts, while YAML would
    make a number and a date of them.

    `lines` has the line of each field, and under the empty name that of the element.
    """

    __slots__ = ("lines",)
    lines: Mapping[str, int]

    @classmethod
    def of(cls, text: str, lines: Mapping[str, int]) -> ListElement:
        """With the lines of its fields."""
        item = cls(text)
        item.lines = lines
        return item
