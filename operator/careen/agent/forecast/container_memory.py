"""How much memory the container's limit leaves for the process of a forecast.

Beyond it, the kernel may end the whole container, the agent included (`memory.oom.group`, which Kubernetes sets).
So the process never asks for more than is left, and the forecast says that memory is short.
"""

from __future__ import annotations

import re
from pathlib import Path

from scheduler_core.values import Value

GROUPS = Path("/sys/fs/cgroup")
# For kernel memory and file pages, which count too: an estimate.
RESERVE_BYTES = 12 * 2**20
# OpenBLAS reserves this and never touches it. RLIMIT_DATA counts it, the container's limit does not.
UNTOUCHED_BYTES = 32 * 2**20
_UNLIMITED = 2**60  # cgroup v1 writes a number near 2**63


class MemoryLeft(Value, kw_only=True):
    """The container's limit, and what other processes leave of it."""

    limit_bytes: int
    left_bytes: int


def room(groups: Path = GROUPS, own: Path = Path("/proc/self/status")) -> MemoryLeft | None:
    """None without a limit, or if the limit cannot be read."""
    v1 = groups / "memory"
    for limit, stat, key in (
        (groups / "memory.max", groups / "memory.stat", "anon"),
        (v1 / "memory.limit_in_bytes", v1 / "memory.stat", "total_rss"),
    ):
        most, used = _number(limit, r"(\d+)"), _number(stat, rf"^{key} (\d+)")
        if most is None or used is None or most >= _UNLIMITED:
            continue
        ours = (_number(own, r"^RssAnon:\s+(\d+) kB") or 0) * 1024
        return MemoryLeft(limit_bytes=most, left_bytes=max(0, most - max(0, used - ours) - RESERVE_BYTES))
    return None


def _number(file: Path, pattern: str) -> int | None:
    try:
        found = re.search(pattern, file.read_text(encoding="ascii", errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None
