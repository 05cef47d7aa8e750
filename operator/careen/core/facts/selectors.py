"""Label selectors as on command lines, such as `app=db,tier in (a,b),!canary`. The grammar is apimachinery's
`labels.Parse` (pkg/labels/selector.go): comma-separated requirements that must all hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, Self

from scheduler_core.model.labels import is_label_key, is_label_value
from scheduler_core.values import Value

Operator = Literal["exists", "absent", "in", "notin", "gt", "lt"]

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<absent>!\s*{_KEY})"
    rf"|(?P<set_key>{_KEY})\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\)"
    rf"|(?P<key>{_KEY})\s*(?:(?P<operator>==|=|!=|>|<)\s*(?P<value>{_VALUE}))?)\s*(?:,|$)"
)


class SelectorError(ValueError):
    """The text is not a label selector. The message names the first part that cannot be read."""


class LabelRequirement(Value):
    """One condition on the value of one label, such as `tier in (a,b)`."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """As in Kubernetes, `!=` and `notin` also hold for labels without the key."""
        if self.operator == "exists":
            return self.key in labels
        if self.operator == "absent":
            return self.key not in labels
        if self.operator == "notin":
            return labels.get(self.key) not in self.values
        if self.operator == "in":
            return labels.get(self.key) in self.values
        return self._compares(labels.get(self.key))

    def _compares(self, value: str | None) -> bool:
        if value is None or not re.fullmatch(r"[+-]?\d+", value):
            return False
        bound = int(next(iter(self.values)))
        return int(value) > bound if self.operator == "gt" else int(value) < bound


class Selector(Value):
    """Requirements that must all hold, and their text. Without requirements it matches everything."""

    text: str
    requirements: tuple[LabelRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises SelectorError."""
        found: list[LabelRequirement] = []
        at = 0
        while text[at:].strip():
            match = _REQUIREMENT.match(text, at)
            if match is None or match.end() == at:
                rest = text[at:].strip()
                raise SelectorError(f"{text!r} is not a label selector: {rest!r} cannot be read")
            found.append(_requirement(text, match))
            at = match.end()
        if text.rstrip().endswith(","):
            raise SelectorError(f"{text!r} is not a label selector: the text ends with a comma")
        return cls(text.strip(), tuple(found))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether every requirement holds."""
        return all(requirement.holds(labels) for requirement in self.requirements)


def _requirement(text: str, match: re.Match[str]) -> LabelRequirement:
    found = _read(text, match)
    # A key or value that no object can have would silently select nothing, or with ! and notin everything.
    if not is_label_key(found.key):
        raise SelectorError(f"{text!r} is not a label selector: {found.key!r} is not a label key")
    if found.operator not in ("gt", "lt") and (
        bad := sorted(value for value in found.values if not is_label_value(value))
    ):
        raise SelectorError(f"{text!r} is not a label selector: {bad[0]!r} is not a label value")
    return found


def _read(text: str, match: re.Match[str]) -> LabelRequirement:
    if match["absent"]:
        return LabelRequirement(match["absent"].lstrip("!").strip(), "absent")
    if match["set_key"]:
        values = frozenset(value.strip() for value in match["values"].split(","))
        return LabelRequirement(match["set_key"], "in" if match["set"] == "in" else "notin", values)
    if match["operator"] is None:
        return LabelRequirement(match["key"], "exists")
    if match["operator"] in "<>":
        if not re.fullmatch(r"[+-]?\d+", match["value"]):
            raise SelectorError(
                f"{text!r} is not a label selector: {match['operator']} needs an integer, not {match['value']!r}"
            )
        return LabelRequirement(match["key"], "gt" if match["operator"] == ">" else "lt", frozenset({match["value"]}))
    return LabelRequirement(match["key"], "notin" if match["operator"] == "!=" else "in", frozenset({match["value"]}))
