"""Refuses arguments of the wrong type where the caller passes them, instead of an AttributeError far below."""

from __future__ import annotations

from collections.abc import Collection


def expect(name: str, given: object, wanted: type, *, instead: str, optional: bool = False) -> None:
    """Raises TypeError, with what to pass `instead`."""
    if not (isinstance(given, wanted) or (optional and given is None)):
        raise TypeError(f"{name} is a {type(given).__name__}, expected a {wanted.__name__}: pass {instead}")


def expect_several(name: str, given: object, wanted: type, *, instead: str) -> None:
    """Raises TypeError unless it is a collection of these; a text is none."""
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        raise TypeError(f"{name} is a {type(given).__name__}, expected several of {wanted.__name__}: pass {instead}")
    for each in given:
        if not isinstance(each, wanted):
            found = type(each).__name__
            raise TypeError(f"{name} has a {found}, expected only values of {wanted.__name__}: pass {instead}")


def expect_count(name: str, given: object, *, of: str) -> None:
    """Raises TypeError unless it is a whole number, ValueError if it is negative."""
    if type(given) is not int:
        raise TypeError(f"{name} is the {type(given).__name__} {given!r}: expected {of}, 0 or more")
    if given < 0:
        raise ValueError(f"{name} is {given}: expected {of}, 0 or more")
