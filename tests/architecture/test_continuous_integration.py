"""Tests `.ci/run`. When one part fails, `.ci/run` runs the remaining parts, prints the result of each test runner, and
then fails.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.patience import run

PARTS = (
    "install",
    "check",
    "test",
    "explore",
    "storms",
    "crash-points",
    "test-image",
    "cluster-programs",
    "test-cluster",
    "test-nodes",
)


def run_with_a_make_that(tmp_path: Path, *, fails_at: str = "") -> subprocess.CompletedProcess[str]:
    """Run a copy of `.ci/run` with fake programs in PATH. The fake `make` fails at the target `fails_at`."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python3",):
        (programs / name).write_text("#!/bin/sh\n")
    (programs / "make").write_text(
        f'#!/bin/sh\nfor target; do :; done\necho "12 passed in $target"\n[ "$target" != "{fails_at}" ] || {{ '
        f'echo "1 failed in $target"; exit 3; }}\n'
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    return run(["bash", ".ci/run"], cwd=tmp_path, env={"PATH": f"{programs}:/usr/bin:/bin"})


def test_ci_passes_when_every_part_passes(tmp_path: Path) -> None:
    done = run_with_a_make_that(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if not line.startswith("==")] == [
        f"12 passed in {part}" for part in PARTS
    ]


@pytest.mark.parametrize("part", PARTS)
def test_ci_runs_all_parts_and_then_fails_if_one_part_failed(tmp_path: Path, part: str) -> None:
    done = run_with_a_make_that(tmp_path, fails_at=part)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"1 failed in {part}" in done.stdout
    assert f"== make {part} FAILED with exit code 3" in done.stdout
    assert [f"12 passed in {each}" in done.stdout for each in PARTS] == [True] * len(PARTS)


_FLAKES = (
    """#!/bin/sh
case "$*" in
  *CLUSTER_WORKERS=1*) echo "alone: $*"; exit {second} ;;
  *" test-cluster") for story in {stories}; """
    """do echo "{ended} tests/cluster/test_x.py::$story[one] - boom"; done; exit 1 ;;
esac
echo "12 passed in $*"
"""
)


@pytest.mark.parametrize(
    ("ended", "stories", "second", "code", "is_alone"),
    [
        pytest.param(
            "FAILED", "a b", 0, 0, True, id="a failed test that passes when it runs alone is treated as passed"
        ),
        pytest.param(
            "ERROR", "a b", 0, 0, True, id="after a fixture failed, a test that passes alone is treated as passed"
        ),
        pytest.param("FAILED", "a b", 1, 1, True, id="a test that also fails when it runs alone is treated as failed"),
        pytest.param("FAILED", "a b c d e f", 0, 1, False, id="if many tests fail, none is run again"),
    ],
)
def test_ci_runs_a_failed_parallel_test_again_alone(
    tmp_path: Path, ended: str, stories: str, second: int, code: int, is_alone: bool
) -> None:
    run_with_a_make_that(tmp_path)
    (tmp_path / "bin" / "make").write_text(_FLAKES.format(ended=ended, stories=stories, second=second))
    done = run(["bash", ".ci/run"], cwd=tmp_path, env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"})
    assert done.returncode == code, done.stdout + done.stderr
    assert (
        "== these tests failed in a parallel run and now run again, one at a time: "
        "tests/cluster/test_x.py::a tests/cluster/test_x.py::b" in done.stdout
    ) is is_alone
    assert ("STORIES=tests/cluster/test_x.py::a tests/cluster/test_x.py::b" in done.stdout) is is_alone


def test_the_ci_script_is_executable_and_stops_on_errors() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in script.read_text()


def test_make_help_lists_every_target_that_the_readme_mentions() -> None:
    done = run(["make", "--no-print-directory", "help"], cwd=ROOT)
    listed = {line.split()[0] for line in done.stdout.splitlines()[1:]}
    assert {"help", "install", "demo", "test", "test-cluster", "check", "bench", "image"} <= listed


@pytest.mark.parametrize(
    ("user", "code"),
    [
        pytest.param(1000, 0, id="the exit code is 0 for a user without root rights"),
        # On Debian, root can install everything that the tests need, so a skip is an error.
        pytest.param(0, 1, id="the exit code is 1 for root on Debian"),
    ],
)
def test_if_the_tests_on_real_nodes_cannot_run_they_print_one_line_with_the_reason(
    tmp_path: Path, user: int, code: int
) -> None:
    if not Path("/etc/debian_version").exists():
        pytest.skip("needs Debian")
    for name, body in (("id", f"echo {user}"), ("unshare", "exit 1"), ("apt-get", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    script = ROOT / "tests" / "nodes" / "run-stories"
    done = run([str(script), ".venv", "tests/nodes"], env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert done.returncode == code, done.stdout + done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("SKIPPED: ")
