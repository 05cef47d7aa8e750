"""The bounds of each exploration of a small simulated fleet. Environment variables can widen these bounds."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from tests.careen.explored.fleet import Bounds, SmallFleet
from tests.careen.explored.search import Explored, explore

MORE_FAULTS = int(os.environ.get("MODEL_FAULTS", "0"))
"""The number of faults that one run may have in addition to those of `_ROWS`. With two faults in one run, the rules are
stricter than careen's guarantee: docs/safety.md."""
MORE_DELAYS = int(os.environ.get("MODEL_DELAYS", "0"))
"""The number of delays that one run may have in addition to those of `_ROWS`. A row with `delays=None` has no limit."""

_ROWS = (
    Bounds(agents=3, concurrency=1, faults=1, delays=1),
    Bounds(agents=3, concurrency=2, faults=1, delays=1),
    Bounds(agents=3, concurrency=1, faults=0, delays=None),
)


def rows() -> tuple[Bounds, ...]:
    """Return one `Bounds` for each exploration that `make explore` runs. An exploration runs a small simulated fleet
    through every possible sequence of steps within its bounds, for example with 3 agents and at most 1 fault."""
    return tuple(
        replace(
            row,
            faults=row.faults + MORE_FAULTS,
            delays=None if row.delays is None else row.delays + MORE_DELAYS,
        )
        for row in _ROWS
    )


def explored(bounds: Bounds) -> tuple[Explored, float]:
    """Explore within these bounds. Return the result and the processor time in seconds."""
    began = time.process_time()
    return explore(SmallFleet(bounds)), time.process_time() - began
