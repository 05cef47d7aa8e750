"""Refuses arguments of the wrong type where the caller passes them, instead of an AttributeError far below.

`checked` reads a function's annotations, `expect_fields` those of a value. `Scheduler.schedule` and what runs for each
node compare types by hand, and call `expect` when they differ.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_Each = TypeVar("_Each")
_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Complaint = Callable[[str, object], str]
"""What is wrong with this argument of this name; "" if nothing."""

# What to pass where a value of this class is expected.
_INSTEAD: Final = {
    "Configuration": "Configuration.from_mapping(…)",
    "CycleResult": "the result of Scheduler.schedule(…)",
    "Durations": "Durations(boot=300)",
    "Node": "node_from_manifest(…)",
    "NodeOffer": "NodeOffer(template=like_node(snapshot, name), price=…)",
    "NodeTemplate": "like_node(snapshot, name) or template_from_manifest(…)",
    "Pod": "pod_from_manifest(…) or one of snapshot.pending",
    "Scheduler": "Scheduler()",
    "Search": "start=n",
    "Snapshot": "Snapshot.from_manifests(…) or load_objects(…)",
    "Mapping": "a mapping",
    "Outcome": "Outcome.PENDING",
    "Sequence": "a list",
    "datetime": "datetime(2026, 1, 5, tzinfo=UTC)",
    "str": "a text",
}


def expect(name: str, given: object, wanted: type, *, optional: bool = False) -> None:
    """Raises TypeError, with what to pass instead."""
    if not (isinstance(given, wanted) or (optional and given is None)):
        raise TypeError(_of_class(wanted)(name, given))


def several(name: str, given: object, wanted: type[_Each]) -> tuple[_Each, ...]:
    """These values, also those of an iterator. Raises TypeError unless all are of this class; a text has none."""
    if type(given) is tuple and all(type(each) is wanted for each in given):  # every change of a pod comes here
        return given
    is_iterator = isinstance(given, Iterable) and not isinstance(given, Collection)
    values = tuple(cast("Iterable[_Each]", given)) if is_iterator else given
    if told := _several(Collection, wanted)(name, values):
        raise TypeError(told)
    return tuple(cast("Iterable[_Each]", values))


def pairs_of(given: object, classes: tuple[type[_First], type[_Second]], of: str) -> tuple[tuple[_First, _Second], ...]:
    """These pairs, also those of an iterator. Raises TypeError unless each has a value of each class, in this order."""
    first, second = classes
    try:
        pairs = tuple((one, other) for one, other in cast("Iterable[tuple[_First, _Second]]", given))
    except (TypeError, ValueError) as error:
        raise TypeError(f"pairs are no pairs: pass several of {of}: {error}") from error
    for one, other in pairs:
        if not (isinstance(one, first) and isinstance(other, second)):
            found = f"({type(one).__name__}, {type(other).__name__})"
            raise TypeError(f"pairs has a {found}, expected only pairs of {of}")
    return pairs


def expect_flags(**flags: object) -> None:
    """Raises TypeError for the first that is neither True nor False: a text such as "no" would count as true."""
    for name, given in flags.items():
        if type(given) is not bool:
            raise TypeError(_of_class(bool)(name, given))


def expect_count(name: str, given: object, *, of: str) -> None:
    """Raises TypeError unless it is a whole number, ValueError if it is negative."""
    if type(given) is not int:
        raise TypeError(f"{name} is the {type(given).__name__} {given!r}: expected {of}, 0 or more")
    if given < 0:
        raise ValueError(f"{name} is {given}: expected {of}, 0 or more")


def checked(function: _Function) -> _Function:
    """Raises TypeError for the first argument that is not what its annotation says. An annotation without a rule, such
    as a Protocol, allows everything."""

    @wraps(function)
    def with_right_arguments(*given: Any, **named: Any) -> Any:
        parameters, complaints = _rules_of(function)
        pairs = [*zip(parameters, given, strict=False), *named.items()]  # too many of them: the call says so
        for name, value in pairs:
            told = complaints[name](name, value) if name in complaints else ""
            if told:
                raise TypeError(told)
        return function(*given, **named)

    return cast("_Function", with_right_arguments)


def expect_fields(value: object) -> None:
    """Raises TypeError for the first field of a value that is not what its annotation says: for `__post_init__`."""
    for name, complaint in _rules_of(cast("Any", type(value)))[1].items():
        if told := complaint(name, getattr(value, name)):
            raise TypeError(told)


@cache
def _rules_of(annotated: Any) -> tuple[tuple[str, ...], Mapping[str, _Complaint]]:
    """The names of the parameters in order, and the rules of those that have one."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    named = () if isinstance(annotated, type) else signature(annotated).parameters.values()
    hints = {name: hint for name, hint in get_type_hints(annotated).items() if name != "return"}
    rules = {name: rule for name, hint in hints.items() if (rule := _rule(hint)) is not None}
    return tuple(each.name for each in named if each.kind in kinds), rules


def _rule(hint: Any) -> _Complaint | None:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _any_of([_rule(each) for each in inner])
    if origin is Callable or hint is Callable:
        return lambda name, given: "" if callable(given) else _told(name, given, "a function", "")
    if origin is tuple:
        return _several(tuple, inner[0]) if inner[1:] == (...,) else _of_class(tuple)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _of_class(Mapping)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _several(Collection if issubclass(origin, Collection) else Iterable, inner[0])
    if not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return None
    return _of_class(hint)


def _any_of(rules: list[_Complaint | None]) -> _Complaint | None:
    known = [rule for rule in rules if rule is not None]
    if len(known) < len(rules):
        return None

    def complaint(name: str, given: object) -> str:
        told = [rule(name, given) for rule in known]
        return "" if "" in told else told[0]

    return complaint


def _of_class(wanted: type) -> _Complaint:
    """A whole number is a number as well; True and False are neither."""
    allowed = (float, int) if wanted is float else wanted
    is_number = wanted in (float, int)
    words = {float: "a number", int: "a whole number", bool: "True or False"}.get(wanted, f"a {wanted.__name__}")

    def complaint(name: str, given: object) -> str:
        if isinstance(given, allowed) and not (is_number and isinstance(given, bool)):
            return ""
        return _told(name, given, words, _INSTEAD.get(wanted.__name__, ""))

    return complaint


def _several(container: Any, wanted: Any) -> _Complaint:
    """Only of a collection are the values looked at: an iterator would be used up."""
    is_checked = isinstance(wanted, type) and not getattr(wanted, "_is_protocol", False)
    label = getattr(wanted, "__name__", "values")

    def complaint(name: str, given: object) -> str:
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, container):
            return _told(name, given, f"several of {label}", _INSTEAD.get(label, ""), several=True)
        values = given if is_checked and isinstance(given, Collection) else ()
        for each in values:
            if not isinstance(each, wanted):
                found, instead = type(each).__name__, _INSTEAD.get(label, label)
                return f"{name} has a {found}, expected only values of {label}: pass {instead}"
        return ""

    return complaint


def _told(name: str, given: object, wanted: str, instead: str, *, several: bool = False) -> str:
    shown = f" {given!r}" if isinstance(given, bool | int | float | str | bytes) and len(repr(given)) < 40 else ""
    advice = (f": pass [{instead}]" if several else f": pass {instead}") if instead else ""
    return f"{name} is a {type(given).__name__}{shown}, expected {wanted}{advice}"
