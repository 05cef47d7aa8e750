"""Records which tests reach each line, and how much processor time each test needs.

The record is stored in `.cache/mutants`. After a change of a test file, only that file is recorded again. After a
change of the source or of code that tests share, everything is recorded again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.mutants.mutant import ROOT, Mutant, name_of, path_of, place_of

RECORD = ROOT / ".cache" / "mutants" / "reach.json"
TESTS = ROOT / "tests"
# These tests run against each mutant. Tests that start processes or another server are left out, because the mistake is
# only in this process. Tests of whole fleets are left out, because their failure does not say what is wrong.
TESTED_WITH = (
    "careen/core",
    "careen/cluster",
    *(
        f"careen/agent/test_{name}.py"
        for name in ("apply", "observe", "turn", "rescue", "told_once", "messages", "loop")
    ),
    "scheduler_core/queue",
    "scheduler_core/running",
    "scheduler_core/test_broken_plugins.py",
)
LEFT_OUT = ("careen/core/test_planned_courses.py", "careen/cluster/wire/test_lean_imports.py")
_SHARED = ("careen", "scheduler_core")
_AREAS = (
    "core",
    "agent/apply.py",
    "agent/observe.py",
    "cluster",
    "scheduler_core/queue",
    "scheduler_core/running",
)


@dataclass
class Reach:
    """`lines` maps a file and a line to the tests that reach the line. `seconds` maps each test to its
    processor time.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that run the mutant's lines, the fastest first. Tests in the module's own test file are
        treated as ten times as fast as they are.
        """
        place, by_line = place_of(mutant), self.lines.get(mutant.at.partition(":")[0], {})
        found = {test for line in place.lines for test in by_line.get(line, ())} or {
            test for line in place.function_lines for test in by_line.get(line, ())
        }
        own = f"/test_{mutant.file.name}::"
        return sorted(found, key=lambda test: (self.seconds[test] * (0.1 if own in test else 1.0), test))


def target_files() -> list[Path]:
    """Return the files that have mutants."""
    return [
        file
        for area in _AREAS
        for file in sorted([path_of(area), *path_of(area).rglob("*.py")])
        if file.suffix == ".py"
    ]


def record(items: Sequence[pytest.Item], run: Callable[[pytest.Item], bool]) -> dict[str, Any]:
    """Run these tests under coverage, and return the time and the lines of each test. `run` returns whether a test
    passed.
    """
    measured = coverage.Coverage(
        data_file=None, config_file=False, branch=False, include=[str(file) for file in target_files()]
    )
    seconds: dict[str, float] = {}
    failed: list[str] = []
    measured.start()
    try:
        for item in items:
            measured.switch_context(item.nodeid)
            began = time.process_time()
            if run(item):
                seconds[item.nodeid] = round(time.process_time() - began, 4)
            else:
                failed.append(item.nodeid)
            measured.switch_context("")
    finally:
        measured.stop()
    data = measured.get_data()
    lines = {
        name_of(Path(file)): {
            str(line): sorted(set(tests) & seconds.keys()) for line, tests in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    return {"seconds": seconds, "lines": lines, "failed": failed}


class Record:
    """Reads and writes the file that stores which tests reach each line."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        shared = [file for part in _SHARED for file in _python(TESTS / part) if not _is_test(file)]
        self._base = _digest([*target_files(), *shared])

    def stale(self, files: Iterable[str]) -> dict[str, str]:
        """Return which of these test files must be recorded again, with a digest of their current content."""
        known = self._stored.get("files", {}) if self._stored.get("base") == self._base else {}
        now = {name: _digest([ROOT / name]) for name in files}
        return {name: digest for name, digest in now.items() if known.get(name) != digest}

    def merge(self, stale: Mapping[str, str], recorded: Sequence[dict[str, Any]]) -> None:
        """Delete the stored results of the test files in `stale`, store the results in `recorded`, and write the file.

        The tests in `recorded` ran without a mutant. If such a test failed nevertheless, its test file does not count
        as recorded, and the next run records the test file again.
        """
        again = {test.partition("::")[0] for each in recorded for test in each["failed"]}
        is_same = self._stored.get("base") == self._base
        known = [_without(self._stored, stale)] if is_same else []
        files = (self._stored["files"] if is_same else {}) | dict(stale)
        files = {name: digest for name, digest in files.items() if name not in again}
        seconds: dict[str, float] = {}
        lines: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for each in (*known, *recorded):
            seconds |= each["seconds"]
            for file, by_line in each["lines"].items():
                for line, tests in by_line.items():
                    lines[file][line] += tests
        self._stored = {"base": self._base, "files": files, "seconds": seconds, "lines": lines}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._stored))

    def reach(self) -> Reach:
        """Return which tests reach each line according to the record."""
        return Reach(
            seconds=self._stored["seconds"],
            lines={
                file: {int(line): tests for line, tests in by_line.items()}
                for file, by_line in self._stored["lines"].items()
            },
        )


def _without(stored: dict[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    def is_kept(test: str) -> bool:
        return test.partition("::")[0] not in files

    return {
        "seconds": {test: taken for test, taken in stored["seconds"].items() if is_kept(test)},
        "lines": {
            file: {line: [test for test in tests if is_kept(test)] for line, tests in by_line.items()}
            for file, by_line in stored["lines"].items()
        },
    }


def _python(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _is_test(file: Path) -> bool:
    return file.name.startswith("test_")


def _digest(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(file.as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()
