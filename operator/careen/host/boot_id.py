"""Which boot the host is in, and for how long."""

from __future__ import annotations

import time
from pathlib import Path

from careen.core.facts.observation import Unknown

DEFAULT_FILE = "/proc/sys/kernel/random/boot_id"
"""The kernel makes one per boot, and the kubelet reports the same one in `status.nodeInfo.bootID`. Not in a namespace:
a container reads the host's."""


def read_boot_id(file: Path) -> str | Unknown:
    """The boot id, or why it is not known."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        return Unknown(f"cannot read the boot id from {file}: {error}")
    return text or Unknown(f"the boot id file {file} is empty")


def uptime_seconds() -> float:
    """Seconds since the host booted, sleep included. It runs on across restarts of the agent, so deadlines can
    be kept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
