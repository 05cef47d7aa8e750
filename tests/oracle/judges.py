"""Runs the two programs that choose nodes for the pods of a case: the oracle, which has kube-scheduler's own code, and
a program around scheduler_core."""

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
    """Starts one of the two programs with the cases as its input. The program writes its results to a file. So a
    caller can start both programs, and read the results of both later."""
    questions, answers = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115  they live until the answers are read
    for case in cases:
        questions.write(json.dumps(case, separators=(",", ":")).encode() + b"\n")
    questions.seek(0)
    return subprocess.Popen(list(command), stdin=questions, stdout=answers), answers


def finish(started: tuple[subprocess.Popen[bytes], IO[bytes]], *, timeout: float = 3600) -> dict[str, dict[str, Any]]:
    """Waits for the program, and returns its results by case id. Leaves out the cases that scheduler_core does not
    decide. Raises RuntimeError if the program failed completely; the message of the program is then on standard error.
    """
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
    """Runs a program (kube-scheduler's oracle or scheduler_core) on the cases. Returns its results by case id."""
    return finish(start(command, cases))
