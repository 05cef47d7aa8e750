"""The interface to a node's host, and its implementation for this process's host."""

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
"""The deadline for the test of the reboot command. A turn waits for this test."""


class Host(Protocol):
    """What the agent needs from a host. The simulator has its own implementation."""

    async def read_need(self) -> Need:
        """The need, from sources that are cheap to read."""
        ...

    def read_boot_id(self) -> str | Unknown:
        """The id of the current boot."""
        ...

    def uptime(self) -> float:
        """The seconds since the boot."""
        ...

    async def ask_reboot(self) -> reboot.RebootAnswer:
        """Requests a reboot. Returns before the host reboots."""
        ...

    async def test_reboot(self) -> SelfTest:
        """The known reasons why a reboot would fail, without one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHost:
    """This process's host. Each command is one line, split as a shell would, but no shell runs it."""

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
    """Their number becomes a part of the boot id; None without --reboot-proof=soft-reboots."""
    proc: Path = Path("/proc")

    async def read_need(self) -> Need:
        """By the files only. The attribute `need` can also run commands."""
        return await self.need.look()

    def read_boot_id(self) -> str | Unknown:
        """From the configured file, with the number of soft reboots if `soft_reboots` is set."""
        found = boot_id.read_boot_id(self.boot_id_file)
        return found if self.soft_reboots is None else self.soft_reboots.added_to(found)

    def uptime(self) -> float:
        """From the kernel."""
        return boot_id.uptime_seconds()

    async def ask_reboot(self) -> reboot.RebootAnswer:
        """With the configured command or signal."""
        if self.reboot_method == "signal":
            return reboot.by_signal(self.reboot_signal)  # at once: kill(2) waits for nothing, and needs no thread
        return await reboot.by_command(
            shlex.split(self.reboot_command), how=self.how, deadline_seconds=self.reboot_seconds
        )

    async def test_reboot(self) -> SelfTest:
        """Whether command or signal would work. A warning lists the shutdown inhibitors that the signal would
        bypass."""
        if self.reboot_method == "signal":
            return await asyncio.to_thread(self._test_signal)
        argv = shlex.split(self.reboot_command)
        why = await reboot.why_not_by_command(argv, how=self.how, deadline_seconds=self.test_seconds)
        return SelfTest(obstacle=why)

    def _test_signal(self) -> SelfTest:
        obstacle = reboot.why_not_by_signal(self.reboot_signal, proc=self.proc)
        return SelfTest(obstacle=obstacle, warning=_unheard(inhibitors.of_shutdown(self.root)))


def _unheard(holding: tuple[Inhibitor, ...]) -> str:
    """--reboot-method=signal does not wait for these; "" without any."""
    if not holding:
        return ""
    names = ", ".join(f"{each.who} ({each.mode})" for each in holding[:5])
    has_kubelet = any(each.who == "kubelet" for each in holding)
    return (
        f"--reboot-method=signal bypasses systemd-logind and its shutdown inhibitors: {names}"
        f"{'; pods that are still on the node get no grace period' if has_kubelet else ''}. "
        "--reboot-method=command with `systemctl reboot` waits for these inhibitors"
    )
