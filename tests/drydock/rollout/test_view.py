"""Tests the output of a running roll-out: one line for each change, or a table."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from drydock.rollout.progress_report import NodeLine, RolloutProgress, forecast_words
from drydock.rollout.view import line_printer, table_of


def a_line(
    name: str = "node-01",
    *,
    phase: str = "Idle",
    reason: str = "",
    is_ready: bool = True,
    is_cordoned: bool = False,
    is_rebooted: bool = False,
) -> NodeLine:
    return NodeLine(
        name=name,
        zone="a",
        phase=phase,
        reason=reason,
        forecast="",
        pods=3,
        moved=2,
        is_ready=is_ready,
        is_cordoned=is_cordoned,
        is_rebooted=is_rebooted,
    )


def at(seconds: float, *lines: NodeLine) -> RolloutProgress:
    return RolloutProgress(seconds=seconds, nodes=lines, moved=2, moved_twice=1)


def test_the_view_prints_one_line_for_each_change() -> None:
    out = io.StringIO()
    show = line_printer(out)
    show(at(0.0, a_line()))
    show(at(1.0, a_line(phase="Waiting", reason="next in line")))
    show(at(2.0, a_line(phase="Waiting", reason="another word")))
    show(at(3.0, a_line(phase="Rebooting", is_ready=False, is_cordoned=True)))
    assert out.getvalue().splitlines() == [
        "   1.0 s  node-01  Waiting                       next in line",
        "   3.0 s  node-01  Rebooting, down, cordoned",
    ]


def test_the_table_shows_every_node_and_the_number_of_rebooted_nodes() -> None:
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(
        table_of(
            at(
                7.4,
                a_line("node-01", is_rebooted=True),
                a_line("node-02", phase="Draining", reason="2 pods have to leave the node", is_cordoned=True),
            )
        )
    )
    text = console.export_text()
    assert "1 of 2 nodes rebooted after 7 s, 2 pods moved, 1 of them twice" in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.strip().startswith("node-")}
    assert rows["node-01"] == ["node-01", "a", "Idle", "rebooted", "3", "2"]
    assert rows["node-02"] == [
        "node-02",
        "a",
        "Draining",
        "cordoned",
        "3",
        "2",
        "2",
        "pods",
        "have",
        "to",
        "leave",
        "the",
        "node",
    ]


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (json.dumps({"counts": {"stays": 2, "moves": 3, "returns": 1, "lost": 0}}), "3 moves, 1 returns"),
        ("", ""),
        ("no JSON", ""),
        ("[]", ""),
    ],
)
def test_the_view_shows_a_forecast_as_counts_of_outcomes(annotation: str, words: str) -> None:
    assert forecast_words(annotation) == words
