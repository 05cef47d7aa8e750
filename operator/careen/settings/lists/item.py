"""One element of a list of mappings, as text."""

from __future__ import annotations

from collections.abc import Mapping


class ListElement(str):
    """JSON in which every value is a text, a list or a mapping: `22:00` and `2026-12-24` stay texts, which YAML would
    turn into a number and a date.

    `lines`: the line of each field; the empty name stands for the element itself."""

    __slots__ = ("lines",)
    lines: Mapping[str, int]

    @classmethod
    def of(cls, text: str, lines: Mapping[str, int]) -> ListElement:
        """The text with its lines."""
        item = cls(text)
        item.lines = lines
        return item
