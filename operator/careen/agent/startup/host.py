"""Builds the agent's own host from the settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, cast

from careen.core.facts.observation import Unknown
from careen.host.boot_id import SoftReboots
from careen.host.commands import HostExec
from careen.host.need import HostNeed, Sources
from careen.host.node_host import TEST_SECONDS, LocalHost
from careen.settings.tree import Settings

_COUNT_AGAIN_SECONDS = 10.0


def host_of(settings: Settings) -> LocalHost:
    """The host, with the paths, commands and probes of these settings."""
    how, root = HostExec(settings.host_exec), Path(settings.host_root or "/")
    sources = Sources(
        files=settings.reboot_sentinel,
        command=settings.reboot_sentinel_command,
        probes=settings.reboot_probes,
        packages=settings.reboot_packages,
        longest_uptime_seconds=settings.reboot_max_uptime,
        seconds=settings.sentinel_timeout,
    )
    return LocalHost(
        root=root,
        need=HostNeed(sources, root=root, how=how),
        boot_id_file=Path(settings.boot_id_file),
        how=how,
        reboot_method=cast("Literal['command', 'signal']", settings.reboot_method),
        reboot_command=settings.reboot_command,
        reboot_signal=settings.reboot_signal,
        reboot_seconds=settings.reboot_timeout,
        test_seconds=(seconds := min(settings.sentinel_timeout, TEST_SECONDS)),
        soft_reboots=SoftReboots(how, deadline_seconds=seconds) if settings.reboot_proof == "soft-reboots" else None,
    )


async def count_soft_reboots(host: LocalHost, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Waits until systemd's number of soft reboots has been read. Until then it is unknown whether the host has
    rebooted, and a holder waits."""
    while host.soft_reboots is not None and isinstance(await host.soft_reboots.read(), Unknown):
        await sleep(_COUNT_AGAIN_SECONDS)
