"""Tests how the agent recognises a running package manager by its lock. The tests take each lock as the package manager
does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from careen.host import package_managers
from careen.host.package_managers import PID_FILES, RECORD_LOCKS, WHOLE_LOCKS, at_work

# How each takes its lock. dpkg, apt and rpm: fcntl(F_SETLK) of a write lock over the whole file; transactional-update:
# lockf(F_TLOCK) over the first 10000 bytes (openSUSE/transactional-update, tukit/tukit.cpp); apt.systemd.daily: flock.
TAKES = {
    "fcntl": "fcntl.lockf(file, fcntl.LOCK_EX)",
    "tukit": "fcntl.lockf(file, fcntl.LOCK_EX, 10000)",
    "reads": "fcntl.lockf(file, fcntl.LOCK_SH)",
    "flock": "fcntl.flock(file, fcntl.LOCK_EX)",
}


@contextmanager
def held(file: Path, how: str) -> Iterator[int]:
    """Start a child process that holds the package manager's lock until the `with` block ends. Yield the id of the
    child process."""
    file.parent.mkdir(parents=True, exist_ok=True)
    program = f"import fcntl, sys; file = open(sys.argv[1], 'a+'); {TAKES[how]}; print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process.pid
        finally:
            process.communicate("\n")


def below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


@pytest.mark.parametrize("lock", RECORD_LOCKS, ids=lambda lock: lock.path)
@pytest.mark.parametrize("how", ["fcntl", "tukit", "reads"])
def test_a_package_manager_that_holds_its_lock_is_reported_with_its_process(
    tmp_path: Path, lock: package_managers.LockFile, how: str
) -> None:
    with held(below(tmp_path, lock.path), how) as pid:
        assert at_work(tmp_path).startswith(f"{lock.manager} (process {pid}, ")
    assert at_work(tmp_path) == "", "the file remains, but no process holds its lock"


@pytest.mark.parametrize("lock", WHOLE_LOCKS, ids=lambda lock: lock.path)
def test_the_daily_apt_service_is_found_in_proc_locks(tmp_path: Path, lock: package_managers.LockFile) -> None:
    with held(below(tmp_path, lock.path), "flock") as pid:
        assert at_work(tmp_path).startswith(f"{lock.manager} (process {pid}, ")
    assert at_work(tmp_path) == ""


def test_a_lock_on_another_file_is_ignored(tmp_path: Path) -> None:
    below(tmp_path, WHOLE_LOCKS[0].path).parent.mkdir(parents=True)
    below(tmp_path, WHOLE_LOCKS[0].path).touch()
    with held(tmp_path / "other", "flock"):
        assert at_work(tmp_path) == ""


@pytest.mark.parametrize("how", ["fcntl", "flock"])
def test_the_check_for_package_managers_takes_no_lock(tmp_path: Path, how: str) -> None:
    """`dpkg` fails if another process holds its lock, even for a moment."""
    file = below(tmp_path, "/var/lib/dpkg/lock" if how == "fcntl" else WHOLE_LOCKS[0].path)
    file.parent.mkdir(parents=True)
    file.touch()
    at_work(tmp_path)
    with held(file, how):
        at_work(tmp_path)
        assert at_work(tmp_path) != "", "the process still holds the lock"


@pytest.mark.parametrize("lock", PID_FILES, ids=lambda lock: lock.path)
@pytest.mark.parametrize(
    ("text", "command", "is_seen"),
    [
        ("4711\n", b"zypper\0dup\0", True),
        ("4711\n", b"", False),  # a zombie, as libzypp has it
        ("4711\n", None, False),  # it has ended, and left its file
        ("", b"zypper", False),  # libzypp empties the file when it is done
        ("0", b"x", False),
        ("-1", b"x", False),
        ("4711x", b"x", False),
        ("../4711", b"x", False),
        ("9" * 40, b"x", False),
    ],
)
def test_zypper_is_found_by_the_process_id_in_its_lock_file(
    tmp_path: Path, lock: package_managers.LockFile, text: str, command: bytes | None, is_seen: bool
) -> None:
    """The lock file contains the process id and a line break. Source: isProcessRunning in openSUSE/libzypp,
    zypp/zypp_detail/ZyppLock.cc.
    """
    file, proc = below(tmp_path, lock.path), tmp_path / "proc"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    if command is not None:
        (proc / "4711").mkdir(parents=True)
        (proc / "4711" / "cmdline").write_bytes(command)
        (proc / "4711" / "comm").write_text("zypper\n")
    assert at_work(tmp_path, proc=proc) == ("zypper (process 4711, zypper)" if is_seen else "")


def test_a_lock_path_that_is_not_a_regular_file_is_not_opened(tmp_path: Path) -> None:
    """Opening a FIFO would block the agent."""
    for lock in (*RECORD_LOCKS, *PID_FILES):
        below(tmp_path, lock.path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(below(tmp_path, lock.path))
    assert at_work(tmp_path) == ""


def test_a_symlink_at_a_lock_path_is_not_followed(tmp_path: Path) -> None:
    file = below(tmp_path, "/var/lib/dpkg/lock")
    file.parent.mkdir(parents=True)
    file.symlink_to(tmp_path / "elsewhere")
    with held(tmp_path / "elsewhere", "fcntl"):
        assert at_work(tmp_path) == ""


def test_a_host_without_lock_files_has_no_running_package_manager(tmp_path: Path) -> None:
    assert at_work(tmp_path / "not-there", proc=tmp_path / "nor-this") == ""
