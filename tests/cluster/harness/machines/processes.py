"""Starts other programs, and ensures that none of them outlives the test run.

Every program gets its own session, and so its own process group. A guardian process reads the list of groups from a
pipe. When the test run ends for any reason (normal end, Ctrl-C, SIGKILL), the pipe closes and the guardian kills the
remaining groups.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

_GUARDIAN = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try: os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError): pass
"""


def free_port() -> int:
    """Return a TCP port on 127.0.0.1 that is free at this instant."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Guardian:
    """A helper process that knows every live process group, and kills the groups when the test process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _GUARDIAN], stdin=subprocess.PIPE, start_new_session=True, text=True
        )

    def watch(self, group: int) -> None:
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def close(self) -> None:
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process.wait(timeout=10)


class Program:
    """One started program, its process group and its log file."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        guardian: Guardian,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._guardian = guardian
        self._used = 0.0
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=None if env is None else dict(env),
                cwd=cwd,
            )
        guardian.watch(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return the exit code of the program, or None while the program runs."""
        return self._process.poll()

    def processor_seconds(self) -> float:
        """Return the processor time of the program and its descendants, including ended descendants. After the program
        was killed, return the last known value.
        """
        if self.exit_code() is None:
            self._used = max(self._used, sum(map(processor_seconds, descendants(self.pid))))
        return self._used

    def signal(self, number: signal.Signals) -> None:
        """Send the signal to the whole process group, if the group still exists."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        self.processor_seconds()
        self.signal(signal.SIGKILL)
        self._reap(10)

    def stop(self, patience_seconds: float = 10) -> int | None:
        """Send SIGTERM. After `patience_seconds`, send SIGKILL to the remaining processes. Return the exit code."""
        self.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=patience_seconds)
        self.kill()
        return self._process.returncode

    def _reap(self, seconds: float) -> None:
        self._process.wait(timeout=seconds)
        self._guardian.forget(self._process.pid)

    def tail(self, lines: int = 25) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


def processor_seconds(pid: int) -> float:
    """Return the user and system time of a process and of the children that it waited for. Return 0 if the process has
    ended.
    """
    try:
        # Counted after the name, which is in parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """Return the ids of the process and all its descendants, parents first."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found
