"""Templates of messages: kured's `%s` for the node's name, and named fields such as `{node}`."""

from __future__ import annotations

import re
from collections.abc import Mapping

FIELDS = ("node", "cluster", "reason", "duration", "forecast")
"""The names of the fields that every template of a message may use."""

FIGURES = ("nodes", "pods", "failures")
"""The names of the fields that only the template of the message about a finished roll-out may use, besides those in
`FIELDS`."""

# All other text in braces stays as it is: kured's templates may hold JSON.
_PART = re.compile(r"%%|%s|\{\{[A-Za-z_][A-Za-z0-9_-]*\}\}|\{[A-Za-z_][A-Za-z0-9_-]*\}")


def fields_of(template: str) -> tuple[str, ...]:
    """The names of the fields in single braces, each once, in their order."""
    parts = (part for part in _PART.findall(template) if part[0] == "{" and part[1] != "{")
    return tuple(dict.fromkeys(part[1:-1] for part in parts))


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with `{node}` and the other fields filled in (without a value, a field stays), `%s` for the node's
    name, `%%` for a percent sign, `{{node}}` for the literal `{node}`. It is read once from left to right, as in Go, so
    braces inside a value stay."""

    def value(found: re.Match[str]) -> str:
        part = found[0]
        if part == "%%":
            return "%"
        if part == "%s":
            return values.get("node", "")
        return part[1:-1] if part.startswith("{{") else values.get(part[1:-1], part)

    return _PART.sub(value, template)


def spoken(seconds: float) -> str:
    """Such as `40 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
