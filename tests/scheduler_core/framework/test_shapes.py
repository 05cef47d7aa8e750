"""Tests scores that a plugin computes from a shape (points of utilization and score): they are linear between the
points, and truncated toward zero."""

from __future__ import annotations

import pytest

from scheduler_core.config.plugin_args import ShapePoint
from scheduler_core.framework.scoring.shapes import FULL, scores_along


@pytest.mark.parametrize(
    ("utilization", "score"), [(0, 20), (9, 20), (10, 20), (15, 35), (20, 50), (25, 30), (29, 14), (30, 10), (100, 10)]
)
def test_a_score_between_two_points_of_a_shape_is_interpolated_and_truncated_toward_zero(
    utilization: int, score: int
) -> None:
    shape = (
        ShapePoint(utilization=10, score=2),
        ShapePoint(utilization=20, score=5),
        ShapePoint(utilization=30, score=1),
    )
    assert scores_along(shape)[utilization] == score


def test_a_score_on_a_falling_shape_is_truncated_toward_zero() -> None:
    assert scores_along((ShapePoint(utilization=0, score=10), ShapePoint(utilization=3, score=0)))[1] == 67


def test_a_shape_of_one_point_gives_the_same_score_at_every_utilization() -> None:
    assert scores_along((ShapePoint(utilization=50, score=3),)) == (30,) * (FULL + 1)
