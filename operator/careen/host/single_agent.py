"""A file lock on the host, against two agents on one node, for example while a force-deleted pod still runs.

The kernel releases it when the process ends. Without it, two checks still protect the node right before the reboot: the
announcement carries the Node's resourceVersion, and the cluster's lock is read.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from careen.host.paths import under_root
from scheduler_core.values import Value


class Held(Value):
    """This process is the node's only agent while it keeps this value."""

    descriptor: int


class HeldByOther(Value):
    """Another process on this host is the node's agent."""

    file: Path


class CannotLock(Value):
    """The lock file cannot be written, for example because its mount is read-only."""

    why: str


def adopt(descriptor: int, root: Path, folder: str, node: str) -> Held | None:
    """The file lock that this process already held before it replaced itself; None if the descriptor is not this
    node's lock file, or if another process holds the lock."""
    try:
        ours, file = os.fstat(descriptor), under_root(root, f"{folder}/careen-{node}.lock").lstat()
        if (ours.st_dev, ours.st_ino) != (file.st_dev, file.st_ino):
            return None
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return None
    os.set_inheritable(descriptor, False)
    return Held(descriptor)


def take(root: Path, folder: str, node: str) -> Held | HeldByOther | CannotLock:
    """Takes the file lock of this node's agent, without waiting."""
    file = root
    descriptor = -1
    try:
        file = under_root(root, f"{folder}/careen-{node}.lock")
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return HeldByOther(file)
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        return CannotLock(f"the file {file} cannot be locked: {error}")
    return Held(descriptor)
