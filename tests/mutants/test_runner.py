"""Tests the report of `make mutants` about mutants that are killed, survive, never end, or no longer apply."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.mutant import ROOT
from tests.patience import run

_MARK, _SENTENCES = "core/lock/overdue.py:_mark", "core/lock/overdue.py:sentences"
_KILLED = ("killed", _MARK, "mark == before or", "")
_ENDLESS = ("endless", _MARK, "before = entry.overdue", "while True:\n        pass\n    before = entry.overdue")
_WAITING = ("waiting", _MARK, "before = entry.overdue", "__import__('signal').pause()\n    before = entry.overdue")
_SAME = ("same", _SENTENCES, "for entry in entries if", "for entry in list(entries) if")
_GONE = ("gone", _MARK, "no such words", "")


def run_mutants(
    record: Path, *mutants: tuple[str, ...], child: str = "", options: Sequence[str] = ()
) -> tuple[int, str]:
    """Run the mutants against one test file in a new process. Return the exit code and the output."""
    program = (
        f"import subprocess, sys\nchild = subprocess.Popen(['sh', '-c', {child!r}])\n"
        "from tests.mutants.__main__ import main\nfrom tests.mutants.mutant import Mutant\n"
        f"sys.exit(main(sys.argv[1:], [Mutant(*each) for each in {mutants!r}]))"
    )
    flags = ["--tests", "careen/core/lock/test_overdue.py", "--record", record, "--least-seconds", "1"]
    done = run([sys.executable, "-c", program, *flags, *options], cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def test_the_runner_stops_a_hanging_mutant_without_killing_other_child_processes(tmp_path: Path) -> None:
    code, output = run_mutants(tmp_path / "reach.json", _WAITING, child="sleep 1", options=["--idle-seconds", "4"])
    assert code == 0, output
    assert "waits for ever" in output


def test_the_runner_reports_each_result_and_fails_if_a_mutant_survives(tmp_path: Path) -> None:
    reason = "a copy of the list has the same entries"
    code, output = run_mutants(tmp_path / "reach.json", _KILLED, _ENDLESS, (*_SAME, reason))
    assert code == 0, output
    assert "recording which lines each test reaches" in output
    assert "Mutants killed by a test: 2 of 3" in output
    assert "Mutants that survive: 1 with a reason in the catalogue, 0 without a reason" in output
    assert "never ends: it reached the limit of processor time" in output

    code, output = run_mutants(tmp_path / "reach.json", _SAME, (*_KILLED, "nobody would notice"), _GONE)
    assert code == 1, output
    assert "recording which lines each test reaches" not in output
    for words in ("SURVIVES", "KILLED, although the catalogue expects no test to fail", "no longer applies: gone"):
        assert words in output
