"""The base class of values: frozen, compared field by field, and with little cost per class.

Each class that `dataclasses.dataclass` makes compiles six functions of its own; classes made here share them. This
saves memory in the agent and time at every start: `python -m bench.agent.tricks` measures both. A class that needs
`field(init=False)` or `field(metadata=...)` stays a dataclass; one with a `cached_property` says `dict=True`.
"""

from __future__ import annotations

from dataclasses import Field, fields, make_dataclass
from typing import TYPE_CHECKING, Any, dataclass_transform

import msgspec


class _Fields:
    """Provides what `replace`, `asdict` and `fields` of `dataclasses` read from a class. Created on demand, with names
    only."""

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

    if not TYPE_CHECKING:  # which knows from `dataclass_transform` that it is there
        __dataclass_fields__ = _Fields()
