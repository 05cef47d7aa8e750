"""Paths of the host below `--host-root`; symbolic links are followed as on the host."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

PROC = Path("/proc")
_INITIAL = 0xEFFFFFFC  # PROC_PID_INIT_INO of include/linux/proc_ns.h: the machine's first namespace of processes
# What a container runtime runs as the first process of a pod: Kubernetes' pause image, CRI-O's on OpenShift, podman's.
_OF_PODS = frozenset({"pause\n", "pod\n", "catatonit\n"})
_MOST_LINKS = 40  # what Linux follows before it returns ELOOP


def why_not_the_host(proc: Path) -> str:
    """Why process 1 shows nothing of the host; "" if it does. Without hostPID it is a process of the agent's own
    container, or with shareProcessNamespace of its pod, which says "no need" for ever.

    A node may itself be a container (kind). So the machine's first namespace of processes is not required, but another
    file system than the agent's is, and another program than those that hold a pod's namespaces.
    """
    if _namespace(proc, "self", "pid") in {_INITIAL, None}:
        return ""
    if _is_shared(proc, "mnt"):
        whose = "the agent's own container"
    elif read_regular_file(proc, "1/comm", 64) in _OF_PODS:
        whose = "the agent's own pod (shareProcessNamespace)"
    else:
        return ""
    return (
        f"process 1 belongs to {whose}, not to the host: set `hostPID: true` in the pod template, as "
        "manifests/daemonset.yaml does"
    )


def _is_shared(proc: Path, kind: str) -> bool:
    """With process 1. Not if it is another user's: what the agent reads or runs there fails by itself."""
    ours, theirs = _namespace(proc, "self", kind), _namespace(proc, "1", kind)
    return ours is not None and ours == theirs


def _namespace(proc: Path, process: str, kind: str) -> int | None:
    try:
        return (proc / process / "ns" / kind).stat().st_ino
    except OSError:
        return None


def under_root(root: Path, path: str) -> Path:
    """The host's `path` below `root`.

    Follows symbolic links as the host would, except for the last part: Debian's `/var/run` is a link to `/run`, which
    would lead into the agent's own container. Raises OSError (ELOOP) if links form a cycle.
    """
    if root == Path("/"):
        return Path(path)
    followed = 0
    here: list[str] = []
    ahead = [part for part in reversed(PurePosixPath(path).parts) if part != "/"]
    while ahead:
        part = ahead.pop()
        if part == "..":
            here = here[:-1]
            continue
        candidate = root.joinpath(*here, part)
        if not ahead or not candidate.is_symlink():
            here.append(part)
            continue
        followed += 1
        if followed > _MOST_LINKS:
            raise OSError(40, "Too many levels of symbolic links", str(root / path.lstrip("/")))
        target = PurePosixPath(candidate.readlink())
        if target.is_absolute():
            here = []
        ahead.extend(part for part in reversed(target.parts) if part != "/")
    return root.joinpath(*here)


def read_regular_file(root: Path, path: str, most_bytes: int) -> str | None:
    """The beginning of a small text file, None if it cannot be read. The last part of the path must not be a link.
    Never waits for a pipe or a device."""
    try:
        descriptor = open_regular_file(root, path)
    except OSError:
        return None
    try:
        return os.read(descriptor, most_bytes).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def open_regular_file(root: Path, path: str) -> int:
    """An open descriptor, which the caller closes. Raises OSError if the file cannot be opened or is not a regular
    one."""
    file = under_root(root, path)
    if not stat.S_ISREG(file.lstat().st_mode):
        raise OSError(22, "the file is not a regular file", str(file))
    return os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
