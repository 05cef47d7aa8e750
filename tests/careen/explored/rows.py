"""The bounds of each exploration of `make explore`. Environment variables can widen them."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from tests.careen.explored.fleet import Bounds, SmallFleet
from tests.careen.explored.search import Explored, explore

MORE_FAULTS = int(os.environ.get("MODEL_FAULTS", "0"))
"""With two faults in one run, the rules are stricter than careen's guarantee: docs/safety.md."""
MORE_DELAYS = int(os.environ.get("MODEL_DELAYS", "0"))

_ROWS = (
    Bounds(agents=3, concurrency=1, faults=1, delays=1),
    Bounds(agents=3, concurrency=2, faults=1, delays=1),
    Bounds(agents=3, concurrency=1, faults=0, delays=None),
)


def rows() -> tuple[Bounds, ...]:
    return tuple(
        replace(
            row,
            faults=row.faults + MORE_FAULTS,
            delays=None if row.delays is None else row.delays + MORE_DELAYS,
        )
        for row in _ROWS
    )


def explored(bounds: Bounds) -> tuple[Explored, float]:
    """The result, and the processor time in seconds."""
    began = time.process_time()
    return explore(SmallFleet(bounds)), time.process_time() - began
