"""The port to a node's host, and its implementation for the host that this process runs on."""

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
"""The deadline for reading files; the turn waits for it."""


class Host(Protocol):
    """What the agent needs from a host. The simulator has its own implementation."""

    async def read_need(self) -> Need:
        """Whether the host needs a reboot, from the sources that are cheap to read."""
        ...

    def read_boot_id(self) -> str | Unknown:
        """The id of the current boot."""
        ...

    def uptime(self) -> float:
        """Seconds since the host booted."""
        ...

    async def ask_reboot(self) -> reboot.RebootAnswer:
        """Requests a reboot; returns before it happens."""
        ...

    async def test_reboot(self) -> SelfTest:
        """Known reasons why a reboot would fail; does not reboot."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHost:
    """The host that this process runs on. Commands are one line each, split as a shell would split them; no shell runs
    them."""

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
    """The count of soft reboots, appended to the boot id; None: the boot id alone proves a reboot."""
    proc: Path = Path("/proc")

    async def read_need(self) -> Need:
        """The need that files on the host show; for commands, see `need`."""
        return await self.need.look()

    def read_boot_id(self) -> str | Unknown:
        """The boot id from the kernel, or from the configured file."""
        found = boot_id.read_boot_id(self.boot_id_file)
        return found if self.soft_reboots is None else self.soft_reboots.added_to(found)

    def uptime(self) -> float:
        """Seconds since the boot, from the kernel."""
        return boot_id.uptime_seconds()

    async def ask_reboot(self) -> reboot.RebootAnswer:
        """Asks the host to reboot, by the configured command or signal."""
        if self.reboot_method == "signal":
            return reboot.by_signal(self.reboot_signal)  # at once: kill(2) waits for nothing, and needs no thread
        return await reboot.by_command(
            shlex.split(self.reboot_command), how=self.how, deadline_seconds=self.reboot_seconds
        )

    async def test_reboot(self) -> SelfTest:
        """Tests the program or the signal without a reboot; for the signal, also reports the inhibitors that it would
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
    """A warning about the inhibitors that the signal would bypass; empty if there are none or they cannot be read."""
    if not holding:
        return ""
    names = ", ".join(f"{each.who} ({each.mode})" for each in holding[:5])
    has_kubelet = any(each.who == "kubelet" for each in holding)
    lost = "; pods that are still on the node get no grace" if has_kubelet else ""
    return (
        "--reboot-method=signal bypasses systemd-logind and its shutdown inhibitors: "
        f"{names}{lost}. --reboot-method=command with `systemctl reboot` waits for them"
    )
