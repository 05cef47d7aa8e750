"""Refuses arguments of the wrong type where the caller passes them, instead of an AttributeError far below."""

from __future__ import annotations


def expect(name: str, given: object, wanted: type, *, instead: str, optional: bool = False) -> None:
    """Raises TypeError, with what to pass `instead`."""
    if not (isinstance(given, wanted) or (optional and given is None)):
        raise TypeError(f"{name} is a {type(given).__name__}, expected a {wanted.__name__}: pass {instead}")
