"""A share of one core for a process and its children: by a cgroup where one can be made, else by stopping the process
for the rest of each tenth of a second."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_SECONDS = 0.1


@contextmanager
def share_of_a_core(share: float, name: str) -> Iterator[tuple[str, Callable[[int], None]]]:
    """How it is done, and a function that puts a process there."""
    group = _made_group(share, name)
    if group is not None:
        try:
            yield f"cgroup {group.parent.name or group.parent}", lambda pid: _join(group, pid)
        finally:
            for pid in (group / "cgroup.procs").read_text().split():
                with suppress(OSError):
                    _join(group.parent, int(pid))
            with suppress(OSError):
                group.rmdir()
        return
    ended, pids = threading.Event(), list[int]()
    worker = threading.Thread(target=_stop_and_go, args=(share, pids, ended), daemon=True)
    worker.start()
    try:
        yield "SIGSTOP for the rest of each 100 ms", pids.append
    finally:
        ended.set()
        worker.join()


def _made_group(share: float, name: str) -> Path | None:
    period = round(_PERIOD_SECONDS * 1e6)
    for parent, file, text in (
        (_GROUPS / "cpu", "cpu.cfs_quota_us", str(round(share * period))),
        (_GROUPS, "cpu.max", f"{round(share * period)} {period}"),
    ):
        group = parent / f"{name}-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(text)
        except OSError:
            group.rmdir()
            continue
        return group
    return None


def _join(group: Path, pid: int) -> None:
    (group / "cgroup.procs").write_text(str(pid))


def _stop_and_go(share: float, pids: list[int], ended: threading.Event) -> None:
    while not ended.is_set():
        for number, seconds in ((signal.SIGSTOP, 1 - share), (signal.SIGCONT, share)):
            for pid in list(pids):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pids.remove(pid)
            time.sleep(_PERIOD_SECONDS * seconds)
