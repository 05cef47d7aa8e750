"""Makes the garbage collector run rarely while a plan is simulated."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# The next search begins after this many new objects. A plan of 5,000 nodes keeps fewer objects, and few of them are in
# reference cycles.
_OBJECTS: Final = 10_000_000


@contextmanager
def few_collections() -> Iterator[None]:
    """Most objects of a simulation live until its end, so a search would visit all of them and free nothing."""
    known = gc.get_threshold()
    if known[0]:
        gc.set_threshold(max(known[0], _OBJECTS), *known[1:])
    try:
        yield
    finally:
        gc.set_threshold(*known)
