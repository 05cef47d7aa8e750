"""Tests that a `Value` behaves like a frozen dataclass, and that the functions of `dataclasses` accept it."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

import msgspec
import pytest

from scheduler_core.values import Value


class Place(Value):
    name: str
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class Seat(Place, kw_only=True):
    row: int
    window: Place | None = None


HOME = Seat("home", row=1, window=Place("left"))


def test_the_fields_of_a_value_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        HOME.row = 2  # type: ignore[misc]


def test_replacing_a_field_of_a_value_keeps_the_other_fields() -> None:
    changed = replace(HOME, row=2)
    assert (changed.row, changed.name, changed.window, type(changed)) == (2, "home", Place("left"), Seat)
    assert HOME.row == 1


@pytest.mark.parametrize("changes", [{"color": "red"}, {"row": 2, "column": 3}])
def test_replacing_an_unknown_field_of_a_value_is_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        replace(HOME, **changes)


def test_values_are_equal_by_class_and_fields() -> None:
    assert Place("a") == Place("a") != Place("b")
    assert Place("home") != HOME
    assert len({Seat("a", row=1, labels=()), Seat("a", row=1, labels=())}) == 1  # type: ignore[arg-type]


def test_the_dataclasses_module_treats_a_subclass_of_value_like_a_dataclass() -> None:
    assert is_dataclass(HOME)
    assert [each.name for each in fields(Seat)] == ["name", "labels", "row", "window"]
    assert asdict(HOME) == {"name": "home", "labels": {}, "row": 1, "window": {"name": "left", "labels": {}}}
    assert repr(Place("a")) == "Place(name='a', labels={})"


def test_mutable_defaults_are_not_shared_between_values() -> None:
    assert Place("a").labels is not Place("b").labels
