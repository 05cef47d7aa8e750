"""Tests of `make bench-running`, which measures the scheduling machine on a generated cluster. A row has the processor
time of each part of the machine for each bound pod."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.running import __main__ as bench


def test_the_bench_has_a_row_for_each_kind_and_the_waiting_pods_change_no_placement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--nodes", "12", "--bind", "8", "--waiting", "5", "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bench.running", *asked])
    bench.main()
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| 12 ")]
    plain, mixed, with_waiting = (dict(zip(bench.HEADER, row, strict=True)) for row in rows)
    assert (plain["KIND"], mixed["KIND"], with_waiting["WAITING"]) == ("plain", "mixed", "5")
    assert plain["PLACEMENTS"] != mixed["PLACEMENTS"] == with_waiting["PLACEMENTS"]
    for row in (plain, mixed, with_waiting):
        assert all(float(row[part]) > 0 for part in ("cycle", "cache", "queue", "assume"))
        assert float(row["all"]) > float(row["sum"])
