"""The base class of values: frozen, compared field by field, and cheap to define.

For each class, `dataclasses.dataclass` compiles six functions; the classes derived from `Value` share their functions.
Sharing saves memory and start time in the agent: `python -m bench.agent.tricks` measures both. A class that needs
`field(init=False)` or `field(metadata=...)` must be a dataclass. A class with a `cached_property` needs `dict=True`.
"""

from __future__ import annotations

from dataclasses import Field, fields, make_dataclass
from typing import TYPE_CHECKING, Any, dataclass_transform

import msgspec


class _Fields:
    """A descriptor for the attribute that `replace`, `asdict` and `fields` of `dataclasses` read from a class. When the
    attribute is first read, the descriptor creates the fields, which contain only their names."""

    def __init__(self) -> None:
        self._made: dict[type[msgspec.Struct], dict[str, Field[Any]]] = {}

    def __get__(self, _: object, owner: type[msgspec.Struct]) -> dict[str, Field[Any]]:
        if owner not in self._made:
            names = make_dataclass(owner.__name__, owner.__struct_fields__, init=False, repr=False, eq=False)
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
    """The base of frozen values: `class Place(Value):` equals `@dataclass(frozen=True, slots=True)`.

    The type checker treats such a class as a dataclass, and `dataclasses.replace` accepts it.
    """

    if not TYPE_CHECKING:  # the type checker knows this attribute from `dataclass_transform`
        __dataclass_fields__ = _Fields()
