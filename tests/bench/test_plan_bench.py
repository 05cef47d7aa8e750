"""Tests of `make bench-plan`, which measures plans of roll-outs on a generated cluster. The report has a row for each
order of the nodes (`oldest`, `zone` and `fewest-moves`)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bench.plan import __main__ as bench


def test_the_bench_has_a_row_for_each_order_and_all_nodes_reboot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.plan", "--nodes", "4", "--folder", str(tmp_path)])
    before = bench.RESULTS.read_text()
    bench.main()
    assert bench.RESULTS.read_text() == before  # a bench with --nodes does not write this file
    first, _, *rows, last = capsys.readouterr().out.splitlines()
    assert re.match(r"4 nodes, 120 pods; processor time: [\d.]+ s to read the dump, ", first)
    assert [(row.split()[0], row.split()[3]) for row in rows] == [("oldest", "4"), ("zone", "4"), ("fewest-moves", "4")]
    assert re.fullmatch(r"largest resident set: \d+ MiB", last)


def test_the_page_of_the_bench_has_a_row_for_each_size_and_order(tmp_path: Path) -> None:
    found = [bench.measured(tmp_path, nodes, (bench.Order.OLDEST,), seed=1, concurrency=2) for nodes in (3, 4)]
    page = bench.page(found, 2)
    assert re.search(r"^\| 3 \| 90 \| oldest \| [\d.]+ \| [\d.]+ \| \d+ \| \d+ \|$", page, re.MULTILINE)
    assert re.search(r"^\| 4 \| [\d.]+ \| [\d.]+ \| \d+ MiB \|$", page, re.MULTILINE)


def test_the_bench_stops_if_a_plan_command_fails() -> None:
    with pytest.raises(SystemExit, match="exit code 7"):
        bench.cost([sys.executable, "-c", "raise SystemExit(7)"])
