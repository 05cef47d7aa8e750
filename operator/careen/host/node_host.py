"""The host as the shell sees it: one port, and the real thing behind it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from careen.core.observation import Need, NeedAnswer, Unknown
from careen.host import boot_id, reboot, sentinel
from careen.host.commands import Exited, HostExec, NotStarted, run_on_host


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

    async def self_test(self) -> tuple[str, ...]:
        """A sentence for each thing that would only show when it is needed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHost:
    """The host that this process runs on. Commands are given as one line and split as a shell would, without a shell."""

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
    _sentinel: sentinel.FileLook = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        look = sentinel.FileLook(self.root, self.sentinel_file, deadline_seconds=self.sentinel_seconds)
        object.__setattr__(self, "_sentinel", look)

    async def read_need(self) -> Need:
        """From the command if there is one, else from the file."""
        if self.sentinel_command:
            return await sentinel.run_command(shlex.split(self.sentinel_command), how=self.how, deadline_seconds=self.sentinel_seconds)
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
        return await reboot.by_command(shlex.split(self.reboot_command), how=self.how, deadline_seconds=self.reboot_seconds)

    async def self_test(self) -> tuple[str, ...]:
        """Sentinel, boot id and the way to reboot, without rebooting."""
        need, boot = await self.read_need(), self.read_boot_id()
        found = [
            need.detail if need.answer is NeedAnswer.UNKNOWN else "",
            boot.why if isinstance(boot, Unknown) else "",
            await self._why_no_reboot(),
        ]
        return tuple(sentence for sentence in found if sentence)

    async def _why_no_reboot(self) -> str:
        if self.reboot_method == "signal":
            answer = reboot.by_signal(0)  # signal 0 is none: only the right to send one is tried
            return answer.why if isinstance(answer, reboot.Refused) else ""
        program = shlex.split(self.reboot_command)[0]
        match await run_on_host(["sh", "-c", 'command -v "$0"', program], how=self.how, deadline_seconds=self.sentinel_seconds):
            case Exited(code=0):
                return ""
            case NotStarted(why):
                return f"commands cannot be run on the host, so it could not be rebooted: {why}"
            case _:
                return f"the host has no program {program}, so the reboot command would fail"
