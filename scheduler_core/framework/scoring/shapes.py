"""Scores from a configured shape: a piecewise linear function from a resource's utilization to a score.

Source: BuildBrokenLinearFunction in plugins/helper/shape_score.go, v1.36.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from scheduler_core.config.plugin_args import ShapePoint
from scheduler_core.framework.extension_points import MAX_NODE_SCORE

FULL = 100
"""The utilization at which a resource counts as full, in percent."""

_MOST_POINTS = 10  # the highest score of a point of a shape


@lru_cache(maxsize=64)
def scores_along(shape: tuple[ShapePoint, ...]) -> tuple[int, ...]:
    """The score (0 to 100) for each utilization from 0 to `FULL` percent. Between two points it is rounded toward the
    score of the point with the lower utilization."""
    return tuple(_score(shape, utilization) for utilization in range(FULL + 1))


def _score(shape: tuple[ShapePoint, ...], utilization: int) -> int:
    if utilization <= shape[0].utilization:
        return _scaled(shape[0])
    for before, point in pairwise(shape):
        if utilization <= point.utilization:
            rise = (_scaled(point) - _scaled(before)) * (utilization - before.utilization)
            run = point.utilization - before.utilization
            return _scaled(before) + (rise // run if rise >= 0 else -(-rise // run))
    return _scaled(shape[-1])


def _scaled(point: ShapePoint) -> int:
    return point.score * (MAX_NODE_SCORE // _MOST_POINTS)
