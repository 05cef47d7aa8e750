"""Tests the smallest and the largest value of each figure of a plan, such as its duration, over several simulations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from careen.plan.ranges import Ranges, ranges_of
from scheduler_core.simulation.timeline import Closing, Move, Timeline, Wait

T0 = datetime(2026, 3, 4, 22, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def a_timeline(ends: float, *pods: str, pending: float = 0, is_closed: bool = False) -> Timeline:
    waits = (Wait(pod="a", node="n", since=T0, until=at(pending), returns=False, why=""),) if pending else ()
    return Timeline(
        begins=T0,
        ends=at(ends),
        nodes=("n",),
        moves=tuple(Move(pod=pod, source="n", target="m", at=T0) for pod in pods),
        waits=waits,
        closings=(Closing(at=T0, left=1),) if is_closed else (),
    )


def test_each_figure_of_a_plan_has_its_own_minimum_and_maximum() -> None:
    drawn = [a_timeline(300, "a", "b", "a"), a_timeline(200, "a", "b"), a_timeline(250, "a", "b", "c", "d", pending=20)]
    assert ranges_of(iter(drawn)) == Ranges(
        seeds=3, moves=(2, 4), double_moves=(0, 1), ends=(at(200), at(300)), pending_seconds=(0, 20), not_clean=1
    )


def test_a_single_simulation_gives_a_range_of_one_value() -> None:
    ranges = ranges_of([a_timeline(300, is_closed=True)])
    assert ranges.is_single
    assert (ranges.moves, ranges.ends, ranges.not_clean) == ((0, 0), (at(300), at(300)), 1)
