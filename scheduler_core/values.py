"""The base class of values: frozen, compared field by field, and cheap to define.

`dataclasses.dataclass` compiles six functions for each class; subclasses of `Value` share theirs, which saves start
time and memory in the agent. A class that needs `field(init=False)` or
`field(metadata=...)` must be a dataclass. A class with a `cached_property` needs `dict=True`.
"""

from __future__ import annotations

from dataclasses import Field, fields, make_dataclass
from typing import TYPE_CHECKING, Any, dataclass_transform

import msgspec


class _Fields:
    """The attribute that `replace`, `asdict` and `fields` of `dataclasses` read from a class, made at the first read.
    The fields have only their names."""

    def __init__(self) -> None:
        self._made: dict[type[msgspec.Struct], dict[str, Field[Any]]] = {}

    def __get__(self, _: object, owner: type[msgspec.Struct]) -> dict[str, Field[Any]]:
        if owner not in self._made:
            names = make_dataclass(
                owner.__name__,
                owner.__struct_fields__,
                init=False,
                repr=False,
                eq=False,
                namespace={"__doc__": owner.__name__},  # otherwise dataclasses derives one from a signature
            )
            self._made[owner] = {each.name: each for each in fields(names)}
        return self._made[owner]


__all__ = ("Value", "replace_value")

if TYPE_CHECKING:
    from dataclasses import replace as replace_value
else:
    # Equals `dataclasses.replace` for a Value and is several times faster.
    replace_value = msgspec.structs.replace


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True):
    """`class Place(Value):` equals `@dataclass(frozen=True, slots=True)`, for the type checker and for
    `dataclasses.replace` too."""

    if not TYPE_CHECKING:  # the type checker knows this attribute from `dataclass_transform`
        __dataclass_fields__ = _Fields()
