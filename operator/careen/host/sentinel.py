"""The need, from a sentinel file or a sentinel command. After a failed read it is unknown, never "no"."""

from __future__ import annotations

import asyncio
import re
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from careen.core.facts.observation import Need, NeedAnswer
from careen.core.facts.policy import Pattern
from careen.core.facts.times import span
from careen.host.commands import Exited, HostExec, NotFollowed, NotStarted, TimedOut, run_on_host
from careen.host.paths import read_regular_file, under_root
from careen.host.probes.said import a_few

# `sh -c "! needs-restarting"` on a host without that program exits with 0: "yes" for ever, reboot after reboot. The
# shell's message on stderr is the only sign of it (kured issue 976).
_PROGRAM_MISSING = re.compile(r"(command |: )not found|No such file or directory", re.IGNORECASE)

PACKAGES_BESIDE = "reboot-required"
"""Beside this sentinel file Debian and Ubuntu keep a list of packages. None is opened beside others: the ConfigMap may
name sentinel files, but must not choose which files the agent opens."""

_MOST_BYTES = 64 * 1024
_LONGEST_NAME = 255


def read_file(root: Path, path: str, packages: Pattern | None = None) -> Need:
    """Whether the file exists, and which packages need the reboot. Unknown if its folder is missing or unreadable. With
    `packages`, only a match with a listed package counts."""
    need = _look_for(root, path)
    if need.answer is not NeedAnswer.YES or (path.rpartition("/")[2] != PACKAGES_BESIDE and packages is None):
        return need
    names = _packages_beside(root, path)
    if packages is None:
        return _requested_by(names, need) if names else need
    if not names:
        return _unknown(
            f"{need.detail}, but it is unknown which packages need the reboot: {path}.pkgs is missing or empty"
        )
    counting = [name for name in names if packages.search(name)]
    if counting:
        return _requested_by(counting, need)
    return Need(
        answer=NeedAnswer.NO,
        detail=f"{need.detail}, but --reboot-packages matches no package that requests the reboot: {a_few(names)}",
    )


def _requested_by(names: list[str], need: Need) -> Need:
    return replace(need, detail=f"{need.detail}; the reboot is requested by {a_few(names)}")


def _packages_beside(root: Path, path: str) -> list[str]:
    """The listed packages, each once; none without a list."""
    if path.rpartition("/")[2] != PACKAGES_BESIDE:
        return []
    text = read_regular_file(root, f"{path}.pkgs", _MOST_BYTES) or ""
    lines = (line.strip()[:_LONGEST_NAME] for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if line))


def _look_for(root: Path, path: str) -> Need:
    try:
        here = under_root(root, path)
        found = here.lstat()
    except FileNotFoundError:
        return _absent(root, path)
    except OSError as error:
        return _unknown(f"the sentinel file {path} cannot be checked: {error}")
    if stat.S_ISDIR(found.st_mode):
        # A container runtime creates a folder for the hostPath of a missing file. It would ask for a reboot after every
        # reboot.
        return _unknown(
            f"the sentinel file {path} is a folder: remove this folder, and mount its parent folder instead of the file"
        )
    return Need(answer=NeedAnswer.YES, detail=f"the sentinel file {path} exists")


def _absent(root: Path, path: str) -> Need:
    """No if the missing file's folder is readable, otherwise unknown: a missing mount looks like a missing file."""
    folder = under_root(root, path).parent
    try:
        listing = folder.stat()
    except OSError as error:
        return _unknown(
            f"the agent cannot look for the sentinel file {path}: its folder is missing or not readable: {error}"
        )
    if not stat.S_ISDIR(listing.st_mode):
        return _unknown(f"the agent cannot look for the sentinel file {path}: {folder} is not a folder")
    return Need(answer=NeedAnswer.NO, detail=f"the sentinel file {path} does not exist")


async def run_command(argv: Sequence[str], *, how: HostExec, deadline_seconds: float) -> Need:
    """Exit code 0 means yes, 1 no, and any other outcome unknown."""
    name = " ".join(argv)
    match await run_on_host(argv, how=how, deadline_seconds=deadline_seconds):
        case NotStarted(why):
            return _unknown(f"the sentinel command could not be run: {why}")
        case NotFollowed(why):
            return _unknown(f"the agent cannot wait for the end of the sentinel command: {why}")
        case TimedOut(seconds):
            return _unknown(f"the sentinel command `{name}` did not end within {span(seconds)}")
        case Exited(code=0, errors=errors) if _PROGRAM_MISSING.search(errors):
            return _unknown(
                f"the sentinel command `{name}` exited with 0 (yes), but reported that a program is missing: {errors}"
            )
        case Exited(code=0):
            return Need(answer=NeedAnswer.YES, detail=f"the sentinel command `{name}` exited with 0")
        case Exited(code=1, errors=errors) if _PROGRAM_MISSING.search(errors):
            return _unknown(
                f"the sentinel command `{name}` exited with 1 (no), but reported that a program is missing: {errors}"
            )
        case Exited(code=1):
            return Need(answer=NeedAnswer.NO, detail=f"the sentinel command `{name}` exited with 1")
        case Exited(code=code, errors=errors):
            return _unknown(
                f"the sentinel command `{name}` exited with {code}, but only 0 (yes) and 1 (no) are valid: {errors}"
            )


class FileLook:
    """Reads files on a file system that may hang (NFS), one read at a time.

    Past its deadline the need is unknown, and no new read begins until that one ends. Each read has its own daemon
    thread, so the process can end while it hangs.
    """

    def __init__(self, look: Callable[[], Need], what: str, *, deadline_seconds: float) -> None:
        """`what` names the files in messages."""
        self._look = look
        self._what = what
        self._deadline_seconds = deadline_seconds
        self._under_way: asyncio.Future[Need] | None = None
        self._began_at = 0.0

    async def read(self) -> Need:
        """The running read, or a new one; unknown after the deadline."""
        now = asyncio.get_running_loop().time()
        if self._under_way is None:
            try:
                self._under_way, self._began_at = self._begin(), now
            except RuntimeError as error:  # the host has no thread to spare
                return _unknown(f"the agent cannot check {self._what}: {error}")
        look = self._under_way
        await asyncio.wait({look}, timeout=max(0.0, self._deadline_seconds - (now - self._began_at)))
        if not look.done():
            return _unknown(f"the check of {self._what} takes longer than {span(self._deadline_seconds)}")
        return look.result()

    def _begin(self) -> asyncio.Future[Need]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Need] = loop.create_future()
        ended.add_done_callback(lambda _: setattr(self, "_under_way", None))

        def look() -> None:
            try:
                need = self._look()
            except Exception as error:  # otherwise `ended` would never get a result, and no new read could begin
                need = _unknown(f"the agent cannot check {self._what}: {error!r}")
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(ended.set_result, need)

        threading.Thread(target=look, name="sentinel", daemon=True).start()
        return ended


def _unknown(why: str) -> Need:
    return Need(answer=NeedAnswer.UNKNOWN, detail=why)
