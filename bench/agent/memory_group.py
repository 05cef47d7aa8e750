"""A cgroup whose memory is what the kubelet sees of a container."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryGroup:
    folder: Path

    @property
    def joined(self) -> tuple[str, ...]:
        """The beginning of a command line that joins the group, sees it as a container does, and becomes the rest."""
        script = 'echo $$ > "$0/cgroup.procs" && mount --bind "$0" "$1" && shift && exec "$@"'
        return ("unshare", "--mount", "sh", "-c", script, str(self.folder), str(self.folder.parent))

    def most_mib(self) -> float:
        """The greatest usage so far."""
        names = ("memory.peak", "memory.max_usage_in_bytes")
        return int(next(each for name in names if (each := self.folder / name).exists()).read_text()) / 2**20

    def working_set(self) -> float:
        """In MiB, as cAdvisor computes it: the usage without the file pages that were not used lately. File pages count
        for the group that read them first, so those of the interpreter may be missing here."""
        used = next(
            each for name in ("memory.current", "memory.usage_in_bytes") if (each := self.folder / name).exists()
        )
        found = re.search(r"^(?:total_)?inactive_file (\d+)", (self.folder / "memory.stat").read_text(), re.MULTILINE)
        assert found is not None
        return (int(used.read_text()) - int(found[1])) / 2**20


@contextmanager
def memory_group(limit_mib: int | None = None) -> Iterator[MemoryGroup | None]:
    """None where no group can be made, which needs root."""
    for parent, limit in ((_GROUPS / "memory", "memory.limit_in_bytes"), (_GROUPS, "memory.max")):
        folder = parent / f"careen-bench-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if limit_mib is not None:
                (folder / limit).write_text(str(limit_mib * 2**20))
            yield MemoryGroup(folder)
        finally:
            folder.rmdir()
        return
    yield None
