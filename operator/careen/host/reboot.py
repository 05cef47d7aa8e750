"""Requests a reboot with a command or a signal to PID 1, and says before the reboot whether the host accepted it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from careen.core.facts.times import span
from careen.host.commands import Exited, HostExec, NotFollowed, NotStarted, TimedOut, run_on_host
from scheduler_core.values import Value


class RebootRequested(Value):
    """Accepted. Only a new boot id proves the reboot."""


class RebootRefused(Value):
    """Certainly no reboot: the command failed, or the agent may not send the signal."""

    why: str


class RebootUnclear(Value):
    """Perhaps accepted: the command did not end in time, or a signal ended it, as in a shutdown."""

    why: str


RebootAnswer = RebootRequested | RebootRefused | RebootUnclear

# Exit codes of the script that examines a program; no shell uses them itself.
_MISSING, _FOLDER, _NOT_EXECUTABLE = 81, 82, 83

# Not `command -v`: it also finds shell built-ins, and dash accepts a folder or a file that is not executable. A program
# without a slash is searched for as execution will search for it: in the PATH of this process, on the host.
_LOOK_AT_PROGRAM = f"""
verdict={_MISSING}
look() {{
    if [ -d "$1" ]; then [ $verdict != {_MISSING} ] || verdict={_FOLDER}
    elif [ -e "$1" ] && [ ! -x "$1" ]; then verdict={_NOT_EXECUTABLE}
    elif [ -e "$1" ]; then exit 0
    fi
}}
case $0 in
*/*) look "$0" ;;
*)
    IFS=:
    for folder in $PATH; do look "${{folder:-.}}/$0"; done
    ;;
esac
exit $verdict
"""


async def by_command(argv: Sequence[str], *, how: HostExec, deadline_seconds: float) -> RebootAnswer:
    """Runs the reboot command."""
    name = " ".join(argv)
    match await run_on_host(argv, how=how, deadline_seconds=deadline_seconds, outlives_us=True):
        case NotStarted(why):
            return RebootRefused(f"the reboot command could not be run: {why}")
        case NotFollowed(why):
            return RebootUnclear(
                f"the reboot command `{name}` may have started, but the agent cannot wait for its end: {why}"
            )
        case TimedOut(seconds):
            return RebootUnclear(f"the reboot command `{name}` did not end within {span(seconds)}")
        case Exited(code=0):
            return RebootRequested()
        case Exited(code=code) if code < 0 or code in (128 + 9, 128 + 15):
            return RebootUnclear(f"the reboot command `{name}` was ended by a signal (exit code {code})")
        case Exited(code=code, errors=errors, output=output):
            return RebootRefused(
                f"the reboot command `{name}` failed with exit code {code}: "
                f"{errors or output or 'the command printed nothing'}"
            )


async def why_not_by_command(argv: Sequence[str], *, how: HostExec, deadline_seconds: float) -> str:
    """Why the command would certainly fail, or "". Tests only the program; a shell's script is not tested."""
    program = argv[0]
    match await run_on_host(["sh", "-c", _LOOK_AT_PROGRAM, program], how=how, deadline_seconds=deadline_seconds):
        case NotStarted(why, is_program=False):
            return f"the agent cannot run commands on the host, so the reboot command would fail: {why}"
        case Exited(code=code) if code == _MISSING:
            return f"the host has no program {program}, so the reboot command would fail"
        case Exited(code=code) if code == _FOLDER:
            return f"{program} on the host is a folder, not a program, so the reboot command would fail"
        case Exited(code=code) if code == _NOT_EXECUTABLE:
            return f"{program} on the host is not executable, so the reboot command would fail"
        case _:
            return ""  # no shell on the host, too slow or killed: no conclusion


def why_not_by_signal(number: int, *, proc: Path = Path("/proc"), pid: int = 1) -> str:
    """Why the signal would certainly not reboot the host, or ""."""
    answer = by_signal(0, pid=pid)  # signal 0 tests the permission and sends nothing
    if isinstance(answer, RebootRefused):
        return answer.why
    try:
        status = (proc / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.findall(r"^Sig(?:Blk|Cgt):\s*([0-9a-fA-F]+)$", status, re.MULTILINE)
    masks = [int(mask, 16) for mask in found]
    # The kernel drops what PID 1 neither handles nor blocks (systemd blocks its signals and reads them from a
    # descriptor).
    if len(masks) != 2 or any(mask >> (number - 1) & 1 for mask in masks):
        return ""
    name = re.search(r"^Name:\s*(\S+)", status)
    process = f"process {pid} ({name[1]})" if name else f"process {pid}"
    return (
        f"{process} does not handle signal {number}: --reboot-method=signal needs hostPID, and systemd as the host's "
        "init"
    )


def by_signal(number: int, *, pid: int = 1) -> RebootAnswer:
    """For systemd, SIGRTMIN+5 (39) means reboot. Needs the host's PID namespace and CAP_KILL."""
    try:
        os.kill(pid, number)
    except PermissionError:
        return RebootRefused(
            f"the agent is not allowed to send signal {number} to process {pid}: it needs CAP_KILL and hostPID"
        )
    except (ProcessLookupError, OSError) as error:
        return RebootRefused(f"the agent cannot send signal {number} to process {pid}: {error}")
    return RebootRequested()
