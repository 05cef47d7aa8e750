"""What can ask for a reboot, by the names of --reboot-probes: one file each, loaded when it is named.

A probe says yes, no or unknown, with a sentence; unknown never reboots anybody. Which tools they follow is told in
docs/probes.md.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from careen.core.facts.observation import Need
from careen.host.commands import Outcome
from scheduler_core.values import Value


class HostAccess(StrEnum):
    """How far a probe reaches into the host."""

    NOTHING = "nothing"
    FILES = "files"
    COMMAND = "command"


SENTINEL = "sentinel"

PROBES: dict[str, HostAccess] = {
    SENTINEL: HostAccess.NOTHING,  # --reboot-sentinel and --reboot-sentinel-command say where to look
    "needs-restarting": HostAccess.COMMAND,
    "suse": HostAccess.FILES,
    "zypper": HostAccess.COMMAND,
    "kernel": HostAccess.FILES,
    "uptime": HostAccess.NOTHING,
    "flatcar": HostAccess.COMMAND,
    "staged-deployment": HostAccess.FILES,
}
"""Every probe, and what it needs."""

_MODULES = {
    "needs-restarting": "careen.host.probes.needs_restarting",
    "suse": "careen.host.probes.suse",
    "zypper": "careen.host.probes.zypper",
    "kernel": "careen.host.probes.kernel",
    "uptime": "careen.host.probes.uptime",
    "flatcar": "careen.host.probes.flatcar",
    "staged-deployment": "careen.host.probes.staged_deployment",
}


class HostFacts(Value, kw_only=True):
    """What the probes without a command look at."""

    root: Path
    release: str
    """Of the kernel that runs."""
    uptime_seconds: float
    longest_uptime_seconds: float


class CommandProbe(Protocol):
    """A module of this folder that runs a command on the host."""

    ARGV: tuple[str, ...]

    @staticmethod
    def judge(outcome: Outcome) -> Need:
        """What the outcome of the command says."""
        ...


def looking(name: str) -> Callable[[HostFacts], Need]:
    """The look of a probe that runs no command."""
    return cast("Callable[[HostFacts], Need]", _module(name).look)  # type: ignore[attr-defined]


def running(name: str) -> CommandProbe:
    """A probe that runs a command."""
    return cast("CommandProbe", _module(name))


def _module(name: str) -> object:
    return import_module(_MODULES[name])
