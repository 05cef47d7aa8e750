"""The host as the shell sees it: one port, and the real thing behind it."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from careen.core.facts.observation import Need, SelfTest, Unknown
from careen.host import boot_id, inhibitors, reboot, sentinel
from careen.host.commands import HostExec
from careen.host.inhibitors import Inhibitor

_TEST_SECONDS = 10.0  # a look at one file; the turn waits for it


class Host(Protocol):
    """What the shell asks of a host. A simulator has hosts of its own."""

    async def read_need(self) -> Need:
        """Does the host want a reboot?"""
        ...

    def read_boot_id(self) -> str | Unknown:
        """Which boot is this?"""
        ...

    def uptime(self) -> float:
        """Seconds since the host booted."""
        ...

    async def ask_reboot(self) -> reboot.Answer:
        """Asks for a reboot; returns before it happens."""
        ...

    async def test_reboot(self) -> SelfTest:
        """What is known against a reboot, without one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHost:
    """The host that this process runs on. Commands are given as one line and split as a shell would, without a
    shell."""

    root: Path
    sentinel_file: str
    sentinel_command: str
    sentinel_seconds: float
    boot_id_file: Path
    how: HostExec
    reboot_method: Literal["command", "signal"]
    reboot_command: str
    reboot_signal: int
    reboot_seconds: float
    proc: Path = Path("/proc")
    _sentinel: sentinel.FileLook = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        look = sentinel.FileLook(self.root, self.sentinel_file, deadline_seconds=self.sentinel_seconds)
        object.__setattr__(self, "_sentinel", look)

    async def read_need(self) -> Need:
        """From the command if there is one, else from the file."""
        if self.sentinel_command:
            return await sentinel.run_command(
                shlex.split(self.sentinel_command), how=self.how, deadline_seconds=self.sentinel_seconds
            )
        return await self._sentinel.read()

    def read_boot_id(self) -> str | Unknown:
        """From the kernel, or the file given instead."""
        return boot_id.read_boot_id(self.boot_id_file)

    def uptime(self) -> float:
        """From the kernel."""
        return boot_id.uptime_seconds()

    async def ask_reboot(self) -> reboot.Answer:
        """By command or signal, as configured."""
        if self.reboot_method == "signal":
            return reboot.by_signal(self.reboot_signal)  # at once: kill(2) waits for nothing, and needs no thread
        return await reboot.by_command(
            shlex.split(self.reboot_command), how=self.how, deadline_seconds=self.reboot_seconds
        )

    async def test_reboot(self) -> SelfTest:
        """The program or the signal is tried, as far as that goes; and for the signal, who would not hear of
        the shutdown."""
        if self.reboot_method == "signal":
            return await asyncio.to_thread(self._test_signal)
        argv = shlex.split(self.reboot_command)
        seconds = min(self.sentinel_seconds, _TEST_SECONDS)
        return SelfTest(obstacle=await reboot.why_not_by_command(argv, how=self.how, deadline_seconds=seconds))

    def _test_signal(self) -> SelfTest:
        obstacle = reboot.why_not_by_signal(self.reboot_signal, proc=self.proc)
        return SelfTest(obstacle=obstacle, warning=_unheard(inhibitors.of_shutdown(self.root)))


def _unheard(holding: tuple[Inhibitor, ...]) -> str:
    """Whom the signal would pass over; empty when nobody holds a shutdown up, or it cannot be seen."""
    if not holding:
        return ""
    names = ", ".join(f"{each.who} ({each.mode})" for each in holding[:5])
    has_kubelet = any(each.who == "kubelet" for each in holding)
    lost = "; pods that are still on the node get no grace" if has_kubelet else ""
    return (
        "--reboot-method=signal goes past systemd-logind, so that those who hold up a shutdown do not hear of it: "
        f"{names}{lost}. --reboot-method=command with `systemctl reboot` waits for them"
    )
