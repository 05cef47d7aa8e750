"""Asks the host to reboot, by a command or by a signal to PID 1. Returns before it happens, and says what was answered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from careen.host.commands import Exited, HostExec, NotFollowed, NotStarted, TimedOut, run_on_host


@dataclass(frozen=True, slots=True)
class Asked:
    """The host took the order. Whether it reboots shows in the boot id."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The host surely does not reboot because of this: the command failed, or the signal was not allowed."""

    why: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """The order may have been taken: the command did not end in time, or a signal ended it (as a shutdown does)."""

    why: str


Answer = Asked | Refused | Unclear


async def by_command(argv: Sequence[str], *, how: HostExec, deadline_seconds: float) -> Answer:
    """Runs the reboot command."""
    name = " ".join(argv)
    match await run_on_host(argv, how=how, deadline_seconds=deadline_seconds, outlives_us=True):
        case NotStarted(why):
            return Refused(f"the reboot command could not be run: {why}")
        case NotFollowed(why):
            return Unclear(f"the reboot command `{name}` may run, but could not be waited for: {why}")
        case TimedOut(seconds):
            return Unclear(f"the reboot command `{name}` did not end within {seconds:.0f} s")
        case Exited(code=0):
            return Asked()
        case Exited(code=code) if code < 0 or code in (128 + 9, 128 + 15):
            return Unclear(f"the reboot command `{name}` was ended by a signal ({code})")
        case Exited(code=code, errors=errors, output=output):
            return Refused(f"the reboot command `{name}` failed with exit code {code}: {errors or output or 'it printed nothing'}")


def by_signal(number: int, *, pid: int = 1) -> Answer:
    """Sends the signal to PID 1: for systemd, SIGRTMIN+5 (39) means reboot. Needs the host's PID namespace and CAP_KILL."""
    try:
        os.kill(pid, number)
    except PermissionError:
        return Refused(f"not allowed to send signal {number} to process {pid}: the agent needs CAP_KILL and hostPID")
    except (ProcessLookupError, OSError) as error:
        return Refused(f"cannot send signal {number} to process {pid}: {error}")
    return Asked()
