"""The probes that can report the need, by their names in --reboot-probes. Each has its own file, loaded when a setting
names it.

A probe answers yes, no or unknown, with a sentence. Unknown never reboots a node. docs/probes.md lists the tools that
the probes use.
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
    """What a probe needs of the host."""

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
"""By the name of the probe."""

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
    """The facts for probes that run no command."""

    root: Path
    release: str
    """Of the running kernel."""
    uptime_seconds: float
    longest_uptime_seconds: float


class CommandProbe(Protocol):
    """A probe module that runs a command on the host."""

    ARGV: tuple[str, ...]

    @staticmethod
    def judge(outcome: Outcome) -> Need:
        """The probe's answer for the command's outcome."""
        ...


def looking(name: str) -> Callable[[HostFacts], Need]:
    """The function `look` of a probe that runs no command."""
    return cast("Callable[[HostFacts], Need]", _module(name).look)  # type: ignore[attr-defined]


FOLDERS = ("/boot", "/lib/modules")
"""The folders that the probe `kernel` lists."""


def watched(name: str) -> tuple[str, ...]:
    """The files that a probe without a command looks for."""
    return tuple(getattr(_module(name), "FILES", ()))


def running(name: str) -> CommandProbe:
    """The module of a probe that runs a command."""
    return cast("CommandProbe", _module(name))


def _module(name: str) -> object:
    return import_module(_MODULES[name])
