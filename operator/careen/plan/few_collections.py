"""Searches for garbage cycles that are rare while a plan is simulated."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OBJECTS: Final = 100_000  # new ones before the next search; so many in cycles are nothing beside the cluster


@contextmanager
def few_collections() -> Iterator[None]:
    """Makes searches for cycles rare within the block. Most objects of a simulation live to its end, and each search
    goes through all of them: one twentieth of the processor time with 5,000 nodes."""
    known = gc.get_threshold()
    if known[0]:
        gc.set_threshold(max(known[0], _OBJECTS), *known[1:])
    try:
        yield
    finally:
        gc.set_threshold(*known)
