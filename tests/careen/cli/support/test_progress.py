"""Tests progress messages without a terminal: a few lines on standard error, and none for a short operation."""

from __future__ import annotations

from careen.cli.support.progress import SECONDS_PER_LINE, Lines


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def lines_of(steps: list[tuple[float, int]], total: int = 5000) -> list[str]:
    """Return the progress lines that are printed for these steps. Each step is a pair of a time in seconds and the
    number of nodes that are finished at that time."""
    clock, said = Clock(), list[str]()
    lines = Lines("order oldest", total, clock, said.append)
    for after, done in steps:
        clock.now = 100.0 + after
        lines(done)
    return said


def test_a_short_operation_prints_no_progress() -> None:
    assert lines_of([(SECONDS_PER_LINE * part / 1000, part) for part in range(1000)]) == []


def test_progress_prints_at_most_one_line_every_few_seconds() -> None:
    told = lines_of([(second / 10, second) for second in range(1000)])
    assert len(told) == 9
    assert told[0] == "order oldest: 100 of 5,000 nodes are done, about 8 min left"


def test_no_remaining_time_is_shown_until_one_node_is_done() -> None:
    assert lines_of([(60.0, 0), (120.0, 4000)]) == [
        "order oldest: 0 of 5,000 nodes are done",
        "order oldest: 4,000 of 5,000 nodes are done, about 30 s left",
    ]
