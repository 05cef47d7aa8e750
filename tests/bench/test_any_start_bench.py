"""Tests `make bench-accuracy-any-start`, which measures how much processor time a forecast needs to count every
possible start of kube-scheduler's search for a node.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.accuracy import any_start as bench
from scheduler_core.simulation.drain import most_searches
from scheduler_core.simulation.scenario_parts import any_start


def test_the_bench_measures_each_forecast_with_one_start_and_with_every_possible_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []

    def seconds(_snapshot: object, *, counts_any_start: bool) -> float:
        asked.append(counts_any_start)
        return 3.0 if counts_any_start else 1.0

    monkeypatch.setattr(bench, "_seconds", seconds)
    monkeypatch.setattr(bench, "cost", lambda _command: 5.0)
    monkeypatch.setattr(sys, "argv", ["bench", "--nodes", "20", "--runs", "2", "--folder", str(tmp_path)])
    before = bench.RESULTS.read_text()
    bench.main()
    assert asked == [False, True, False, True]
    row = f"| 20 | {most_searches(20)} | no | 5.0 | 1.00 | 3.00 | +2.00 |"
    assert capsys.readouterr().out.splitlines() == [row]
    assert bench.RESULTS.read_text() == before  # a bench with --nodes does not write this file


def test_a_simulated_drain_counts_possible_starts_of_a_search_only_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = bench.cluster_of(tmp_path, 110)
    monkeypatch.setattr(bench, "most_searches", lambda _nodes: 2)
    counted: list[int] = []
    monkeypatch.setattr(any_start, "_by_rank", lambda totals, _wanted: counted.append(1) or totals * 0.0)
    bench._seconds(snapshot, counts_any_start=False)
    assert not counted
    bench._seconds(snapshot, counts_any_start=True)
    assert counted
