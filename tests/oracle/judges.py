"""Runs the two judges: the oracle's binary and scheduler_core's judge."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from typing import IO, Any

SOME_CASES_MISSING = 2  # exit code of scheduler_core's judge
OURS = (sys.executable, "-m", "scheduler_core", "judge")


def start(command: Iterable[str], cases: Iterable[dict[str, Any]]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Starts a judge on the cases. The judge writes to a file, so that two judges can run at once."""
    questions, answers = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115  they live until the answers are read
    for case in cases:
        questions.write(json.dumps(case, separators=(",", ":")).encode() + b"\n")
    questions.seek(0)
    return subprocess.Popen(list(command), stdin=questions, stdout=answers), answers


def finish(started: tuple[subprocess.Popen[bytes], IO[bytes]], *, timeout: float = 3600) -> dict[str, dict[str, Any]]:
    """Returns the results by case id, without cases that scheduler_core could not judge. Raises RuntimeError if a judge
    failed completely. The output then contains the judge's own message."""
    process, answers = started
    if process.wait(timeout=timeout) not in (0, SOME_CASES_MISSING):
        raise RuntimeError(f"{process.args} ended with exit code {process.returncode}: see its message above")
    answers.seek(0)
    found = {}
    for line in answers:
        answer = json.loads(line)
        found[answer["id"]] = answer["answers"]
    return found


def ask(command: Iterable[str], cases: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Starts a judge, waits for it, and returns its results."""
    return finish(start(command, cases))
