"""Reads one mapping of a list setting, field by field. Errors have the field's name; `sources.py` adds the line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn, TypeVar

from msgspec import json

from careen.settings import yaml_text

T = TypeVar("T")


class ListFieldError(ValueError):
    """A field has an unusable value. An empty `field` means the whole mapping."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


class Fields:
    """The fields of one mapping, read by name."""

    def __init__(self, values: Mapping[str, Any], known: Collection[str]) -> None:
        """Raises `ListFieldError` for a name that is not in `known`."""
        self._values = values
        self.text = json.encode(values, order="sorted").decode()
        for name in values:
            if name not in known:
                raise ListFieldError(name, f"the field is unknown; the known fields are {', '.join(known)}")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def refuse(self, name: str, why: str) -> NoReturn:
        """Raises `ListFieldError` for this field."""
        raise ListFieldError(name, why)

    def one(self, name: str, parse: Callable[[str], T], default: T | None = None) -> T:
        """The value of a field with one text. Without a default the field is required. Raises `ListFieldError`."""
        if name not in self._values:
            if default is None:
                raise ListFieldError(name, "the field is missing")
            return default
        value = self._values[name]
        if not isinstance(value, str) or not value.strip():
            raise ListFieldError(name, "expected one value")
        return _parsed(name, value, parse)

    def several(self, name: str, parse: Callable[[str], T]) -> tuple[T, ...]:
        """The values of a field with a list or one text; none if it is missing. Raises `ListFieldError`."""
        value = self._values.get(name, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(each, str) and each.strip() for each in values):
            raise ListFieldError(name, "expected a list of values")
        if name in self._values and not values:
            raise ListFieldError(name, "expected a list with at least one value")
        return tuple(_parsed(name, each, parse) for each in values)


def _parsed(name: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text.strip())
    except ValueError as error:
        raise ListFieldError(name, f"{text.strip()[:80]!r}: {error}") from None


def fields_of(text: str, known: Collection[str]) -> Fields:
    """One mapping in YAML or JSON. Raises `ListFieldError`."""
    try:
        found = yaml_text.items(text)
    except yaml_text.BadYaml as error:
        raise ListFieldError("", f"the text is not YAML: {error}") from None
    if len(found) != 1:
        raise ListFieldError("", "expected one mapping")
    values = json.decode(str(found[0])) if found[0].startswith("{") else None
    if not isinstance(values, dict):
        raise ListFieldError("", f"expected a mapping with the fields {', '.join(known)}")
    return Fields(values, known)
