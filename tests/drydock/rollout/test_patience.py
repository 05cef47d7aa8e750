"""Tests time limits that depend on the computer's load. Load makes a limit longer, and each step of progress restarts
the limit.
"""

from __future__ import annotations

import os

import pytest

from drydock.rollout.patience import TimeLimit, crowding


class World:
    def __init__(self, seconds: float = 10.0) -> None:
        self.now, self.crowd = 0.0, 1.0
        self.patience = TimeLimit(seconds, clock=lambda: self.now, crowding=lambda: self.crowd)

    def after(self, seconds: float, progress: object = None) -> bool:
        """Let `seconds` pass on the test's clock, and call `is_over(progress)` after each second. Return the last
        result, which says whether the time limit is exceeded."""
        for _ in range(int(seconds)):
            self.now += 1.0
            over = self.patience.is_over(progress)
        return over


def test_on_an_idle_machine_a_time_limit_is_measured_in_clock_seconds() -> None:
    world = World()
    assert not world.after(10)
    assert world.after(1)
    assert world.patience.waited == "11 s"


def test_a_time_limit_grows_with_the_number_of_processes_per_processor() -> None:
    world = World()
    world.crowd = 30.0
    assert not world.after(299)
    assert world.after(2)
    assert world.patience.waited == "301 s (on a computer with 30 processes for each processor)"


def test_load_makes_a_time_limit_longer_only_while_the_load_lasts() -> None:
    world = World()
    assert not world.after(6)
    world.crowd = 60.0
    assert not world.after(200)
    world.crowd = 1.0
    assert world.after(2)


def test_each_step_of_progress_restarts_the_time_limit() -> None:
    world = World()
    for step in range(20):
        assert not world.after(9, progress=step)
    assert world.after(11, progress=19)


@pytest.mark.parametrize(
    ("load", "ours", "expected"), [(0.0, 0, 1.0), (1.5, 0, 1.0), (60.0, 0, 30.0), (72.0, 12, 30.0), (12.0, 12, 1.0)]
)
def test_the_load_per_processor_excludes_the_processes_of_the_demo(
    monkeypatch: pytest.MonkeyPatch, load: float, ours: int, expected: float
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert crowding(ours) == expected


def test_a_system_without_load_figures_is_treated_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> tuple[float, float, float]:
        raise OSError("unobtainable")

    monkeypatch.setattr(os, "getloadavg", unknown)
    assert crowding() == 1.0
