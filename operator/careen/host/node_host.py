"""The host as the shell sees it: one port, and the real thing behind it."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from careen.core.facts.observation import Need, SelfTest, Unknown
from careen.host import boot_id, inhibitors, reboot
from careen.host.commands import HostExec
from careen.host.inhibitors import Inhibitor
from careen.host.need import HostNeed

TEST_SECONDS = 10.0
"""A look at one file; the turn waits for it."""


class Host(Protocol):
    """What the shell asks of a host. A simulator has hosts of its own."""

    async def read_need(self) -> Need:
        """Does the host want a reboot, as far as that can be asked at any time?"""
        ...

    def read_boot_id(self) -> str | Unknown:
        """Which boot is this?"""
        ...

    def uptime(self) -> float:
        """Seconds since the host booted."""
        ...

    async def ask_reboot(self) -> reboot.RebootAnswer:
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
    need: HostNeed
    boot_id_file: Path
    how: HostExec
    reboot_method: Literal["command", "signal"]
    reboot_command: str
    reboot_signal: int
    reboot_seconds: float
    test_seconds: float = TEST_SECONDS
    soft_reboots: boot_id.SoftReboots | None = None
    """Counted beside the boot id; None: the boot id alone proves a reboot."""
    proc: Path = Path("/proc")

    async def read_need(self) -> Need:
        """From files; what commands say, `need` is asked for itself."""
        return await self.need.look()

    def read_boot_id(self) -> str | Unknown:
        """From the kernel, or the file given instead."""
        found = boot_id.read_boot_id(self.boot_id_file)
        return found if self.soft_reboots is None else self.soft_reboots.added_to(found)

    def uptime(self) -> float:
        """From the kernel."""
        return boot_id.uptime_seconds()

    async def ask_reboot(self) -> reboot.RebootAnswer:
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
        why = await reboot.why_not_by_command(argv, how=self.how, deadline_seconds=self.test_seconds)
        return SelfTest(obstacle=why)

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
