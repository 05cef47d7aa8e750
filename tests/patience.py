"""How tests wait: for a condition, with a limit that follows the load of the machine. A wait that gives up names the
condition.

No test asserts wall-clock time. On a machine with a load of a hundred these waits are long, but no test fails, because
the limit counts seconds of an otherwise idle machine (`drydock.rollout.patience`).
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
    """Return when the condition is true. A failure shows the condition's description at that moment."""
    patience = TimeLimit(SECONDS)
    while not condition():
        assert not patience.is_over(), f"{patience.waited} the condition was not met: {what()}"
        time.sleep(0.02)


async def until(condition: Callable[[], Any], what: Callable[[], str] = lambda: "the condition") -> None:
    """Await until the condition is true, like `wait_until` for a coroutine."""
    patience = TimeLimit(SECONDS)
    while not condition():
        assert not patience.is_over(), f"{patience.waited} the condition was not met: {what()}"
        await asyncio.sleep(0.02)


def ended(process: subprocess.Popen[str], so_far: Callable[[], str] = lambda: "") -> int:
    """The exit code of a process whose output goes to a file. A process that does not end is killed, and its output is
    shown.
    """
    try:
        wait_until(lambda: process.poll() is not None, lambda: f"the end of {process.args!r}; it said:\n{so_far()}")
    except AssertionError:
        process.kill()
        process.wait()
        raise
    return process.returncode


def run(command: Sequence[Any], *, input: str | None = None, **how: Any) -> subprocess.CompletedProcess[str]:  # noqa: A002 - subprocess's word
    """Run a process like `subprocess.run` with captured text. A process that does not end fails the test with its whole
    output.
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
    """Deadlines for a test of a deadline, each longer than the last. The test uses the first one that leaves enough
    time.
    """
    for power in range(6):
        yield seconds * 4**power
