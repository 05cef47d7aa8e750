"""Reads the host's boot id, its uptime and its count of soft reboots."""

from __future__ import annotations

import re
import time
from pathlib import Path

from careen.core.facts.observation import Unknown
from careen.core.facts.progress import SOFT_REBOOTS
from careen.host.commands import Exited, HostExec, run_on_host

DEFAULT_FILE = "/proc/sys/kernel/random/boot_id"
"""The kernel creates one boot id per boot, and the kubelet reports it in `status.nodeInfo.bootID`. A container reads
the host's, because the file is not namespaced."""


def read_boot_id(file: Path) -> str | Unknown:
    """The host's boot id, or why it is unknown."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        return Unknown(f"the boot id cannot be read from {file}: {error}")
    return text or Unknown(f"the boot id file {file} is empty")


def uptime_seconds() -> float:
    """Since the boot, including the time in sleep. Deadlines use this clock because it continues when the agent
    restarts."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_COUNT_COMMAND = ("systemctl", "show", "--property=SoftRebootsCount", "--value")
_UNREAD = Unknown("the host's count of soft reboots is not known yet")


class SoftReboots:
    """The soft reboots since the boot, from systemd.

    A soft reboot ends every process and keeps the kernel with its boot id. So the first answer is valid for the life of
    this process; a failed query is repeated.
    """

    def __init__(self, how: HostExec, *, deadline_seconds: float) -> None:
        self._how = how
        self._deadline_seconds = deadline_seconds
        self.count: int | Unknown = _UNREAD

    async def read(self) -> int | Unknown:
        """Their number, or why it is unknown."""
        if isinstance(self.count, Unknown):
            seconds = self._deadline_seconds
            self.count = _counted(await run_on_host(_COUNT_COMMAND, how=self._how, deadline_seconds=seconds))
        return self.count

    def added_to(self, boot_id: str | Unknown) -> str | Unknown:
        """Boot id and count together identify one run of the host's userspace."""
        if isinstance(boot_id, Unknown):
            return boot_id
        return self.count if isinstance(self.count, Unknown) else f"{boot_id}{SOFT_REBOOTS}{self.count}"


def _counted(outcome: object) -> int | Unknown:
    match outcome:
        case Exited(code=0, output=output) if re.fullmatch(r"[0-9]{1,9}", output, re.ASCII):
            return int(output)
        case Exited(code=0, output=""):
            return Unknown(
                "systemd on the host does not count soft reboots, but --reboot-proof=soft-reboots needs their number"
            )
        case _:
            return Unknown(f"the host's count of soft reboots cannot be read: {outcome}")
