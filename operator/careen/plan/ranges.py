"""The ranges of a plan's figures over simulations with different seeds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from scheduler_core.simulation.timeline import Timeline
from scheduler_core.values import Value


class Ranges(Value, kw_only=True):
    """The least and the greatest value of each figure over all simulated seeds. `not_clean` counts the seeds whose
    timeline is not clean (`Timeline.is_clean`). If nothing depends on chance, only one seed is simulated."""

    seeds: int
    moves: tuple[int, int]
    double_moves: tuple[int, int]
    ends: tuple[datetime, datetime]
    pending_seconds: tuple[float, float]
    not_clean: int

    @property
    def is_single(self) -> bool:
        return self.seeds == 1


def ranges_of(timelines: Iterable[Timeline]) -> Ranges:
    """The ranges over these timelines, of which there must be at least one. Does not keep them in memory."""
    figures = [
        (len(each.moves), each.double_moves, each.ends, each.pending_seconds, each.is_clean) for each in timelines
    ]
    moves, double_moves, ends, pending, clean = zip(*figures, strict=True)
    return Ranges(
        seeds=len(figures),
        moves=(min(moves), max(moves)),
        double_moves=(min(double_moves), max(double_moves)),
        ends=(min(ends), max(ends)),
        pending_seconds=(min(pending), max(pending)),
        not_clean=clean.count(False),
    )
