"""Tests the helpers with which tests wait: when a helper gives up, it reports its condition and the program's output.
Also tests that no test has a wall-clock limit.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests import patience

ROOT = Path(__file__).resolve().parents[2]


def test_a_process_that_does_not_end_is_killed_and_its_output_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(patience, "SECONDS", 2.0)
    program = (
        f"import os, time; print('began', flush=True); open({str(tmp_path / 'pid')!r}, "
        "'w').write(str(os.getpid())); time.sleep(600)"
    )
    for seconds in patience.growing(2.0):
        monkeypatch.setattr(patience, "SECONDS", seconds)
        with pytest.raises(AssertionError, match="the condition was not met: the end of") as failed:
            patience.run([sys.executable, "-c", program])
        if (tmp_path / "pid").exists():
            break
    assert "began" in str(failed.value)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_waiting_helper_that_gives_up_reports_its_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SECONDS", 0.1)
    with pytest.raises(AssertionError, match="the condition was not met: rain"):
        patience.wait_until(lambda: False, lambda: "rain")


def test_the_helper_run_returns_the_output_and_exit_code_of_a_process() -> None:
    done = patience.run(["sh", "-c", "cat; echo oops >&2; exit 3"], input="hello")
    assert (done.returncode, done.stdout, done.stderr) == (3, "hello", "oops\n")


def test_pytests_timeout_shows_where_a_test_hangs() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert options["timeout"] >= 3600
    assert (options["timeout_method"], options["faulthandler_timeout"] < options["timeout"]) == ("signal", True)


# Calls that would end a test by the wall clock: limits for a child process, an answer, a thread or an event.
_LIMITS = re.compile(
    r"(?<![\w-])(?:timeout=\d|asyncio\.timeout\(|asyncio\.wait_for\(|mark\.timeout\([1-9]|\.(?:join|wait)\(\d)"
)


@pytest.mark.parametrize("folder", ["careen", "scheduler_core", "drydock", "bench", "architecture", "conformance"])
def test_no_test_has_a_wall_clock_limit(folder: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in sorted((ROOT / "tests" / folder).rglob("*.py"))
        if file != Path(__file__)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if _LIMITS.search(line)
    ]
    assert found == []
