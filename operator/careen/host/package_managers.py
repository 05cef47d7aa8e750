"""Finds a package manager at work: a reboot during its transaction may leave a host that does not boot.

It locks its own file. The agent queries these locks but takes none: even a brief one could make `dpkg` fail. Unreadable
files are skipped. With --reboot-method=signal no lock file is mounted.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from pathlib import Path

from careen.host.paths import open_regular_file, read_regular_file, under_root
from scheduler_core.values import Value


class LockFile(Value):
    """A lock file, and its package manager's name for messages."""

    path: str
    manager: str


RECORD_LOCKS = (
    LockFile("/var/lib/dpkg/lock-frontend", "apt"),  # apt-pkg/contrib/fileutl.cc, GetLock: fcntl(F_SETLK)
    LockFile("/var/lib/dpkg/lock", "dpkg"),  # lib/dpkg/file.c, file_lock: fcntl(F_SETLK)
    LockFile("/usr/lib/sysimage/rpm/.rpm.lock", "rpm"),  # rpm's lib/rpmlock.cc: fcntl(F_SETLK); dnf and yum, too
    LockFile("/var/lib/rpm/.rpm.lock", "rpm"),  # the same before Fedora 36 and RHEL 10
    LockFile("/var/run/transactional-update.pid", "transactional-update"),  # tukit/tukit.cpp: lockf(F_TLOCK)
)
"""Locked with fcntl(2) while a package manager works."""

WHOLE_LOCKS = (LockFile("/var/lib/apt/daily_lock", "apt's daily service"),)  # apt.systemd.daily: flock -w 3600
"""Locked with flock(2) while a package manager works. No system call queries that, so the agent reads /proc/locks."""

PID_FILES = (
    LockFile("/run/zypp.pid", "zypper"),  # libzypp, zypp/zypp_detail/ZyppLock.cc
    LockFile("/run/zypp-rpm.pid", "zypper"),
)
"""They have the process id of a package manager at work."""

_FLOCK = struct.Struct("hhqqi4x")  # struct flock: l_type, l_whence, l_start, l_len, l_pid
_LOCKS_BYTES = 1024 * 1024
_HELD = re.compile(r"^\d+: FLOCK +\S+ +\S+ +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.MULTILINE)


def at_work(root: Path, *, proc: Path = Path("/proc")) -> str:
    """The package manager at work, with its process if known; "" if none is."""
    for lock in RECORD_LOCKS:
        if (pid := _record_lock_holder(root, lock.path)) is not None:
            return _told(lock.manager, pid, proc)
    for lock in WHOLE_LOCKS:
        if (pid := _whole_lock_holder(root, lock.path, proc)) is not None:
            return _told(lock.manager, pid, proc)
    for lock in PID_FILES:
        if (pid := _living(root, lock.path, proc)) is not None:
            return _told(lock.manager, pid, proc)
    return ""


def _record_lock_holder(root: Path, path: str) -> int | None:
    """The process that holds a lock of fcntl(2); None without a lock, 0 or less if the kernel does not know the
    process."""
    try:
        descriptor = open_regular_file(root, path)
    except OSError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else pid


def _whole_lock_holder(root: Path, path: str, proc: Path) -> int | None:
    """The process that holds a lock of flock(2). Not on btrfs, where `/proc/locks` has another device number than the
    file."""
    try:
        file = under_root(root, path).lstat()
        with (proc / "locks").open(encoding="ascii", errors="replace") as listing:
            text = listing.read(_LOCKS_BYTES)
    except OSError:
        return None
    wanted = (os.major(file.st_dev), os.minor(file.st_dev), file.st_ino)
    for pid, major, minor, inode in _HELD.findall(text):
        if (int(major, 16), int(minor, 16), int(inode)) == wanted:
            return int(pid)
    return None


def _living(root: Path, path: str, proc: Path) -> int | None:
    """The process of a pid file, if it is alive. Without a command line it is a zombie and counts as dead, as in
    libzypp."""
    number = (read_regular_file(root, path, 32) or "").strip()
    if not re.fullmatch(r"[1-9][0-9]{0,9}", number, re.ASCII):
        return None
    try:
        with (proc / number / "cmdline").open("rb") as command:
            return int(number) if command.read(1) else None
    except OSError:
        return None


def _told(manager: str, pid: int, proc: Path) -> str:
    if pid <= 0:
        return manager
    try:
        name = (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        name = ""
    return f"{manager} (process {pid}{f', {name}' if name else ''})"
