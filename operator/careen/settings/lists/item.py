"""One element of a list of mappings, as JSON text with line numbers."""

from __future__ import annotations

from collections.abc import Mapping


class ListElement(str):
    """JSON in which every value is a text, a list or a mapping. `22:00` and `2026-12-24` stay texts; YAML would turn
    them into a number and a date.

    `lines` has the line of each field. The empty name has the line of the element itself."""

    __slots__ = ("lines",)
    lines: Mapping[str, int]

    @classmethod
    def of(cls, text: str, lines: Mapping[str, int]) -> ListElement:
        """Returns the text with the lines of its fields."""
        item = cls(text)
        item.lines = lines
        return item
