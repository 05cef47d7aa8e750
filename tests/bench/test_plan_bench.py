"""`make bench-plan` plans the documented cluster in every order."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bench.plan import __main__ as bench


def test_every_order_gets_a_row_in_which_all_nodes_reboot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.plan", "--nodes", "4", "--folder", str(tmp_path)])
    bench.main()
    first, _, *rows, last = capsys.readouterr().out.splitlines()
    assert first.startswith("4 nodes, 120 pods, 4 at a time; read in ")
    assert [(row.split()[0], row.split()[3]) for row in rows] == [("oldest", "4"), ("zone", "4"), ("fewest-moves", "4")]
    assert re.fullmatch(r"largest resident set: \d+ MiB", last)
