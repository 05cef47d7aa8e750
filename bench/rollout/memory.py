"""The memory of running agent processes, from /proc."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.machines.processes import descendants


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMemory:
    """In MiB."""

    resident: float
    private: float


def memory_of(pid: int) -> ProcessMemory | None:
    """None if the process has ended."""
    try:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    kib = {key.rstrip(":"): int(value) for key, value, *_ in (row.split() for row in rows)}
    return ProcessMemory(resident=kib["Rss"] / 1024, private=(kib["Private_Clean"] + kib["Private_Dirty"]) / 1024)


def agent_memory(host: Host) -> ProcessMemory | None:
    """The memory of the largest among the started process and its descendants, so that a wrapper such as unshare or
    a shell does not count."""
    if host.agent is None:
        return None
    found = [memory for pid in descendants(host.agent.pid) if (memory := memory_of(pid)) is not None]
    return max(found, key=lambda memory: memory.resident, default=None)


class Sampler:
    """Measures every few seconds and keeps the largest value of each host. Child processes, such as a forecast,
    count too."""

    def __init__(self, hosts: Mapping[str, Host], every_seconds: float = 3.0) -> None:
        self.greatest: dict[str, ProcessMemory] = {}
        self._hosts = hosts
        self._every = every_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            for name, host in self._hosts.items():
                memory = agent_memory(host)
                if memory is not None and (name not in self.greatest or memory.resident > self.greatest[name].resident):
                    self.greatest[name] = memory

    def close(self) -> None:
        self._ended.set()
        self._thread.join(timeout=10)
