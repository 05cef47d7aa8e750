"""Fields of a parsed configuration, and their problems, each beginning with the path of its field.

configuration.py and plugin_args.py define what the fields mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

_DURATION_UNITS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
T = TypeVar("T")

_INT32 = 2**31
_INT64 = 2**63


class ConfigurationError(ValueError):
    """The configuration is invalid. `problems`: a sentence each, beginning with the path of the field."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def parse_duration_seconds(text: str) -> float | None:
    """A Go duration such as "1m30s" or "500ms"; None for any other text."""
    if text in ("0", "+0", "-0"):
        return 0.0
    match = re.fullmatch(r"([+-]?)((?:\d+\.?\d*(?:ns|us|µs|ms|s|m|h)|\.\d+(?:ns|us|µs|ms|s|m|h))+)", text)
    if match is None:
        return None
    total = sum(
        (
            Fraction(number if not number.startswith(".") else "0" + number) * _DURATION_UNITS[unit]
            for number, unit in _pieces(match[2])
        ),
        Fraction(0),
    )
    return float(-total if match[1] == "-" else total)


def _pieces(text: str) -> list[tuple[str, str]]:
    return [(number.rstrip("."), unit) for number, unit in re.findall(r"(\d*\.?\d*)(ns|us|µs|ms|s|m|h)", text)]


def kind_of(value: object) -> str:
    """The type in words: "a string", "a mapping"."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "a boolean"
    for kind, name in (
        (str, "a string"),
        (int, "an integer"),
        (float, "a number"),
        (Mapping, "a mapping"),
        (list, "a list"),
    ):
        if isinstance(value, kind):
            return name
    return type(value).__name__


@dataclass(kw_only=True)
class Section:
    """One mapping of the configuration, with its path. All sections share the list of problems.

    If a field is absent, null or of the wrong type, the reading methods return the default. A wrong type is also a
    problem.
    """

    values: Mapping[str, Any]
    path: str
    problems: list[str]
    _known: set[str] = field(default_factory=set)

    def where(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def refuse(self, name: str, message: str) -> None:
        self.problems.append(f"{self.where(name)}: {message}" if name else f"{self.path}: {message}")

    def has(self, name: str) -> bool:
        return self._read(name) is not None

    def raw(self, name: str) -> Any:
        return self._read(name)

    def text(self, name: str, default: str = "") -> str:
        value = self._read(name)
        return value if isinstance(value, str) else self._default(name, value, "a string", default)

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self._read(name)
        return value if isinstance(value, bool) else self._default(name, value, "true or false", default)

    def integer(self, name: str, default: int, *, bits: int = 32) -> int:
        value = self._read(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON knows one kind of number; "16.0" decodes into Go's int32 as well
        if isinstance(value, bool) or not isinstance(value, int):
            return self._default(name, value, "an integer", default)
        limit = _INT32 if bits == 32 else _INT64
        if not -limit <= value < limit:
            self.refuse(name, f"{value} does not fit into {bits} bits")
            return default
        return value

    def optional_integer(self, name: str) -> int | None:
        return self.integer(name, 0) if self.has(name) else None

    def duration_seconds(self, name: str, default: float) -> float:
        text = self.text(name)
        if not text:
            return default
        seconds = parse_duration_seconds(text)
        if seconds is None:
            self.refuse(name, f"{text!r} is not a duration; write it like 5s or 1m30s")
            return default
        return seconds

    def texts(self, name: str) -> tuple[str, ...]:
        found: list[str] = []
        for index, value in enumerate(self._list(name)):
            if isinstance(value, str):
                found.append(value)
            else:
                self.refuse(f"{name}[{index}]", f"the value must be a string, not {kind_of(value)}")
        return tuple(found)

    def section(self, name: str) -> Section:
        """Empty if the field is absent."""
        value = self._read(name)
        if not isinstance(value, Mapping):
            value = self._default(name, value, "a mapping", {})
        return Section(values=value, path=self.where(name), problems=self.problems)

    def sections(self, name: str) -> list[Section]:
        found: list[Section] = []
        for index, value in enumerate(self._list(name)):
            path = f"{name}[{index}]"
            if isinstance(value, Mapping):
                found.append(Section(values=value, path=self.where(path), problems=self.problems))
            else:
                self.refuse(path, f"the value must be a mapping, not {kind_of(value)}")
        return found

    def refuse_unknown(self, *also_known: str) -> None:
        """A problem for each field that was not read, so that misspelled names are reported."""
        for name in self.values:
            if name not in self._known and name not in also_known:
                self.refuse(str(name), "unknown field")

    def _list(self, name: str) -> Sequence[Any]:
        value = self._read(name)
        return value if isinstance(value, list | tuple) else self._default(name, value, "a list", [])

    def _read(self, name: str) -> Any:
        self._known.add(name)
        return self.values.get(name)

    def _default(self, name: str, value: object, wanted: str, default: T) -> T:
        if value is not None:
            self.refuse(name, f"the value must be {wanted}, not {kind_of(value)}")
        return default
