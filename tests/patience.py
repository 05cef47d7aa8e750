"""Waits for conditions in tests. The time limit grows with the load of the machine, and the error of a timeout
describes the condition.

No test asserts wall-clock time. `drydock.rollout.patience` computes the limits. On an overloaded machine a wait takes
longer, but no test fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from drydock.rollout.patience import TimeLimit

# Longer than any condition here takes, and short enough for a person who watches a hanging test.
SECONDS = 120.0
# For deadlines of the tested code that the test is not about. They must never end a test.
LONG_SECONDS = 3000.0


def wait_until(condition: Callable[[], Any], what: Callable[[], str] = lambda: "the condition") -> None:
    """Wait until the condition is true. The error of a timeout contains the result of `what`."""
    patience = TimeLimit(SECONDS)
    while not condition():
        assert not patience.is_over(), f"after {patience.waited}, the condition was not met: {what()}"
        time.sleep(0.02)


async def until(condition: Callable[[], Any], what: Callable[[], str] = lambda: "the condition") -> None:
    """Wait until the condition is true, as `wait_until` does, but without blocking the event loop."""
    patience = TimeLimit(SECONDS)
    while not condition():
        assert not patience.is_over(), f"after {patience.waited}, the condition was not met: {what()}"
        await asyncio.sleep(0.02)


def ended(process: subprocess.Popen[str], so_far: Callable[[], str] = lambda: "") -> int:
    """Wait until the process ends, and return its exit code. If the process does not end in time, kill it and fail with
    the text of `so_far`.
    """
    try:
        wait_until(
            lambda: process.poll() is not None,
            lambda: f"the end of the process {process.args!r}; its output was:\n{so_far()}",
        )
    except AssertionError:
        process.kill()
        process.wait()
        raise
    return process.returncode


def run(command: Sequence[Any], *, input: str | None = None, **how: Any) -> subprocess.CompletedProcess[str]:  # noqa: A002 - subprocess's word
    """Run a process like `subprocess.run` with captured text. If the process does not end in time, the test fails and
    shows the whole output.
    """
    with contextlib.ExitStack() as files:
        given, output, errors = (files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
        given.write(input or "")
        given.seek(0)
        process = subprocess.Popen(
            command, stdin=given, stdout=how.pop("stdout", output), stderr=errors, text=True, **how
        )

        def said() -> tuple[str, str]:
            for file in (output, errors):
                file.seek(0)
            return output.read(), errors.read()

        try:
            code = ended(process, lambda: "\n".join(said()))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        return subprocess.CompletedProcess(command, code, *said())


def growing(seconds: float) -> Iterator[float]:
    """Yield longer and longer deadlines. A test tries one deadline after another, until the steps that must happen
    before the deadline have enough time."""
    for power in range(6):
        yield seconds * 4**power
