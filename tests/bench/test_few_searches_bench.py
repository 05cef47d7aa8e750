"""Tests `make bench-accuracy-searches`, which compares forecasts with simulated drains. A forecast follows a few of
kube-scheduler's possible searches for a node, and a simulated drain follows one random search.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from bench.accuracy import few_searches as bench


def test_the_bench_prints_one_row_for_the_fewest_searches_and_one_for_the_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "LEAST_SEARCHES", 4)
    monkeypatch.setattr(bench, "MOST_SEARCHES", 12)
    told = ["--nodes", "110", "--drains", "1", "--times", "3", "--seed", "5", "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bench", *told])
    before = bench.RESULTS.read_text()
    bench.main()
    rows = [[cell.strip() for cell in row.split("|")] for row in capsys.readouterr().out.splitlines()]
    assert [(row[1], row[2], row[3], row[4]) for row in rows] == [
        ("110", "4", "1", "90"),
        ("110", "12", "1", "90"),
    ]
    for row in rows:
        assert 30 <= int(row[5].split()[0]) <= 90  # of 90 landings
        assert float(row[6]) >= 1
    assert bench.RESULTS.read_text() == before  # a bench with --nodes does not write this file


def test_a_pod_on_a_node_that_was_not_forecast_is_outside_its_forecast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = bench.cluster_of(tmp_path, 20)
    monkeypatch.setattr(
        bench, "_landings", lambda world, _scheduler, node, _search: [(world.pods_on(node)[0].key, "nowhere")]
    )
    assert [each.inside for each in bench.judged(snapshot, random.Random(1), 2, 2)] == [0, 0]


def test_half_of_the_searches_use_a_shuffled_node_order() -> None:
    chance = random.Random(3)
    searches = [bench.drawn(chance, 1000) for _ in range(400)]
    assert 150 < sum(search.shuffle > 0 for search in searches) < 250
    assert {search.workers for search in searches} == {1, 2, 4, 8, 16}


def test_the_default_number_of_searches_is_marked_on_the_page_of_the_bench() -> None:
    found = [
        bench.Counted(nodes=nodes, searches=searches, drains=1, landings=200, inside=190, mean_set=4.25)
        for nodes, searches in ((1000, 32), (1000, 160), (5000, 32))
    ]
    rows = [line for line in bench.page(found, 1, 2).splitlines() if line[:3] in ("| 1", "| 5")]
    assert rows == [
        "| 1,000 | 32 | 1 | 200 | 190 (95.0%) | 4.2 |",
        "| 1,000 | 160 (the default) | 1 | 200 | 190 (95.0%) | 4.2 |",
        "| 5,000 | 32 (the default) | 1 | 200 | 190 (95.0%) | 4.2 |",
    ]
