"""The list of probes that can report the need for a reboot, by their names in --reboot-probes. Each probe is one file,
loaded when a setting names it.

A probe answers yes, no or unknown, with a sentence. Unknown never reboots a node. docs/probes.md lists the tools."""

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
    """The access to the host that a probe needs."""

    NOTHING = "nothing"
    FILES = "files"
    COMMAND = "command"


SENTINEL = "sentinel"

PROBES: dict[str, HostAccess] = {
    SENTINEL: HostAccess.NOTHING,  # --reboot-sentinel and --reboot-sentinel-command name its sources
    "needs-restarting": HostAccess.COMMAND,
    "suse": HostAccess.FILES,
    "zypper": HostAccess.COMMAND,
    "kernel": HostAccess.FILES,
    "uptime": HostAccess.NOTHING,
    "flatcar": HostAccess.COMMAND,
    "staged-deployment": HostAccess.FILES,
}
"""Every probe, and the access that it needs."""

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
    """The facts of the host that are given to probes without a command."""

    root: Path
    release: str
    """The running kernel's release."""
    uptime_seconds: float
    longest_uptime_seconds: float


class CommandProbe(Protocol):
    """A probe module that runs a command on the host."""

    ARGV: tuple[str, ...]

    @staticmethod
    def judge(outcome: Outcome) -> Need:
        """Turns the command's outcome into the probe's answer."""
        ...


def looking(name: str) -> Callable[[HostFacts], Need]:
    """Returns the function of a probe that runs no command."""
    return cast("Callable[[HostFacts], Need]", _module(name).look)  # type: ignore[attr-defined]


def running(name: str) -> CommandProbe:
    """Returns the module of a probe that runs a command."""
    return cast("CommandProbe", _module(name))


def _module(name: str) -> object:
    return import_module(_MODULES[name])
