"""Simulated hosts: each has a directory with a boot id and, while it needs a reboot, a sentinel. Reboots take time.

An agent asks for a reboot with the host's command, which touches a file; the checker takes the time of the request from
that file. Only this module writes the hosts' log.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from drydock.rollout.timings import Timings

SENTINEL = "/var/run/reboot-required"
_BOOT_ID = "proc/sys/kernel/random/boot_id"
_ASKED = "reboot-asked"
_LOOK_SECONDS = 0.05
# The kernel stamps files from a clock that ticks up to every ten milliseconds: the touch came up to one tick
# after its stamp.
_STAMP_TICK_SECONDS = 0.011

What = Literal["need", "asked", "down", "booted", "ready"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """One line of the hosts' log. `at` is in seconds of the API server's clock."""

    at: float
    host: str
    what: What
    boot_id: str


class SimulatedHost:
    def __init__(self, name: str, root: Path, chance: random.Random) -> None:
        self.name = name
        self.root = root
        self.is_up = True
        self._chance = chance
        self.boot_id = ""
        for folder in (self.sentinel.parent, self.boot_id_file.parent):
            folder.mkdir(parents=True, exist_ok=True)
        self.begin_boot()

    @property
    def sentinel(self) -> Path:
        return self.root / SENTINEL.lstrip("/")

    @property
    def boot_id_file(self) -> Path:
        return self.root / _BOOT_ID

    @property
    def asked_file(self) -> Path:
        return self.root / _ASKED

    @property
    def reboot_command(self) -> str:
        return f"/usr/bin/touch {self.asked_file}"

    def begin_boot(self) -> None:
        """Writes a new boot id and removes the sentinel, which does not survive a boot: as on Debian, it is on
        tmpfs."""
        self.boot_id = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        self.boot_id_file.write_text(f"{self.boot_id}\n")
        self.sentinel.unlink(missing_ok=True)
        self.asked_file.unlink(missing_ok=True)

    def asked_at(self) -> float | None:
        """When the reboot was asked for, in seconds of the wall clock."""
        try:
            return self.asked_file.stat().st_mtime
        except FileNotFoundError:
            return None


class Hosts:
    """All hosts, their log, and the loop that performs the reboots.

    `on_down` is called when a host stops, `on_up` when its kubelet runs again.
    """

    def __init__(
        self,
        hosts: dict[str, SimulatedHost],
        timings: Timings,
        chance: random.Random,
        *,
        clock: Callable[[], float],
        on_down: Callable[[SimulatedHost], None],
        on_up: Callable[[SimulatedHost], None],
    ) -> None:
        self.by_name = hosts
        self.log: list[HostRecord] = []
        self._timings = timings
        self._chance = chance
        self._clock = clock
        self._on_down = on_down
        self._on_up = on_up
        self._reboots: dict[str, asyncio.Task[None]] = {}

    def need_reboot(self, name: str) -> None:
        """As the installation of a kernel does."""
        host = self.by_name[name]
        host.sentinel.touch()
        self._record(host, "need")

    async def run(self) -> None:
        """Performs requested reboots until cancelled, or until one fails."""
        try:
            while True:
                for reboot in self._reboots.values():
                    if reboot.done():
                        reboot.result()  # it removes itself from the list after success
                for host in self.by_name.values():
                    if host.is_up and host.name not in self._reboots and host.asked_at() is not None:
                        self._reboots[host.name] = asyncio.create_task(self._reboot(host))
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for reboot in self._reboots.values():
                reboot.cancel()

    async def _reboot(self, host: SimulatedHost) -> None:
        asked = host.asked_at() or time.time()
        self._record(host, "asked", at=self._clock() - max(0.0, time.time() - asked - _STAMP_TICK_SECONDS))
        await asyncio.sleep(self._lasts(self._timings.shutdown))
        host.is_up = False
        self._record(host, "down")
        self._on_down(host)
        await asyncio.sleep(self._lasts(self._timings.boot))
        host.begin_boot()
        self._record(host, "booted")
        await asyncio.sleep(self._lasts(self._timings.kubelet_start))
        host.is_up = True
        del self._reboots[host.name]
        self._record(host, "ready")
        self._on_up(host)

    def _lasts(self, seconds: float) -> float:
        return seconds * self._chance.uniform(1 - self._timings.spread, 1 + self._timings.spread)

    def _record(self, host: SimulatedHost, what: What, *, at: float | None = None) -> None:
        self.log.append(
            HostRecord(at=self._clock() if at is None else at, host=host.name, what=what, boot_id=host.boot_id)
        )
