"""Does the host want a reboot: from files or from a command. What cannot be told is unknown, never "no"."""

from __future__ import annotations

import asyncio
import re
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from careen.core.facts.observation import Need, NeedAnswer
from careen.core.facts.times import span
from careen.host.commands import Exited, HostExec, NotFollowed, NotStarted, TimedOut, run_on_host
from careen.host.paths import read_regular_file, under_root
from careen.host.probes.said import a_few

# `sh -c "! needs-restarting"` on a host without that program exits with 0: "yes" for ever, reboot after reboot.
# The shell says so on its standard error, and that is the only trace of it (kured issue 976).
_PROGRAM_MISSING = re.compile(r"(command |: )not found|No such file or directory", re.IGNORECASE)

PACKAGES_BESIDE = "reboot-required"
"""The name of the sentinel beside which Debian and Ubuntu list the packages that ask for the reboot. Beside no other
name is a list opened: the ConfigMap may name sentinels, and must not choose what is opened."""

_MOST_BYTES = 64 * 1024
_LONGEST_NAME = 255


def read_file(root: Path, path: str, packages: re.Pattern[str] | None = None) -> Need:
    """Whether the sentinel file exists, and which packages ask. The folder that would hold it must be there and
    readable. With `packages`, the names of those that count, a file that no such package asks for is no need."""
    need = _look_for(root, path)
    if need.answer is not NeedAnswer.YES or (path.rpartition("/")[2] != PACKAGES_BESIDE and packages is None):
        return need
    names = _packages_beside(root, path)
    if packages is None:
        asking = f"; asked for by {a_few(names)}" if names else ""
        return Need(answer=NeedAnswer.YES, detail=f"{need.detail}{asking}")
    if not names:
        return _unknown(f"{need.detail}, but which packages ask for the reboot cannot be told: no {path}.pkgs")
    counting = [name for name in names if packages.search(name)]
    if counting:
        return Need(answer=NeedAnswer.YES, detail=f"{need.detail}; asked for by {a_few(counting)}")
    return Need(
        answer=NeedAnswer.NO,
        detail=f"{need.detail}, but only for {a_few(names)}, which --reboot-packages leaves out",
    )


def _packages_beside(root: Path, path: str) -> list[str]:
    """The names in the list beside the sentinel, each once, in their order; empty where there is no list."""
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
        return _unknown(f"cannot look at the sentinel file {path}: {error}")
    if stat.S_ISDIR(found.st_mode):
        # What a container runtime makes of a hostPath of a file that was not there. It would ask for a reboot
        # after every reboot.
        return _unknown(
            f"the sentinel {path} is a folder, not a file: remove it, and mount the folder above it instead of the file"
        )
    return Need(answer=NeedAnswer.YES, detail=f"the sentinel file {path} exists")


def _absent(root: Path, path: str) -> Need:
    """Absent is "no" only if we could have seen it: a mount that is missing looks exactly like a file that is."""
    folder = under_root(root, path).parent
    try:
        listing = folder.stat()
    except OSError as error:
        return _unknown(f"cannot look for the sentinel file {path}: its folder is not there or not readable: {error}")
    if not stat.S_ISDIR(listing.st_mode):
        return _unknown(f"cannot look for the sentinel file {path}: {folder} is not a folder")
    return Need(answer=NeedAnswer.NO, detail=f"no sentinel file {path}")


async def run_command(argv: Sequence[str], *, how: HostExec, deadline_seconds: float) -> Need:
    """What the sentinel command says: exit code 0 is yes, 1 is no, anything else is unknown."""
    name = " ".join(argv)
    match await run_on_host(argv, how=how, deadline_seconds=deadline_seconds):
        case NotStarted(why):
            return _unknown(f"the sentinel command could not be run: {why}")
        case NotFollowed(why):
            return _unknown(f"the sentinel command could not be waited for: {why}")
        case TimedOut(seconds):
            return _unknown(f"the sentinel command `{name}` did not end within {span(seconds)}")
        case Exited(code=0, errors=errors) if _PROGRAM_MISSING.search(errors):
            return _unknown(f"the sentinel command `{name}` said yes, but also that a program is missing: {errors}")
        case Exited(code=0):
            return Need(answer=NeedAnswer.YES, detail=f"the sentinel command `{name}` exited with 0")
        case Exited(code=1, errors=errors) if _PROGRAM_MISSING.search(errors):
            return _unknown(f"the sentinel command `{name}` said no, but also that a program is missing: {errors}")
        case Exited(code=1):
            return Need(answer=NeedAnswer.NO, detail=f"the sentinel command `{name}` exited with 1")
        case Exited(code=code, errors=errors):
            return _unknown(
                f"the sentinel command `{name}` exited with {code}, which means neither yes (0) nor no (1): {errors}"
            )


class FileLook:
    """A look at files of a host whose file system may hang (NFS): at most one at a time, in a thread of its own.

    A hung look makes the need unknown after its deadline, and no other begins until it ends. Nobody else needs the
    thread: no request, no alert, no reboot waits for it, and it does not keep the process from ending.
    """

    def __init__(self, look: Callable[[], Need], what: str, *, deadline_seconds: float) -> None:
        """`what` is looked at, in the words of a sentence."""
        self._look = look
        self._what = what
        self._deadline_seconds = deadline_seconds
        self._under_way: asyncio.Future[Need] | None = None
        self._began_at = 0.0

    async def read(self) -> Need:
        """What the look that is under way says, or a new one; unknown when it has taken too long."""
        now = asyncio.get_running_loop().time()
        if self._under_way is None:
            try:
                self._under_way, self._began_at = self._begin(), now
            except RuntimeError as error:  # the host has no thread to spare
                return _unknown(f"cannot look at {self._what}: {error}")
        look = self._under_way
        await asyncio.wait({look}, timeout=max(0.0, self._deadline_seconds - (now - self._began_at)))
        if not look.done():
            return _unknown(f"looking at {self._what} takes longer than {span(self._deadline_seconds)}")
        return look.result()

    def _begin(self) -> asyncio.Future[Need]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Need] = loop.create_future()
        ended.add_done_callback(lambda _: setattr(self, "_under_way", None))

        def look() -> None:
            try:
                need = self._look()
            except Exception as error:  # the thread would end without an answer, and the look would never
                need = _unknown(f"cannot look at {self._what}: {error!r}")
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(ended.set_result, need)

        threading.Thread(target=look, name="sentinel", daemon=True).start()
        return ended


def _unknown(why: str) -> Need:
    return Need(answer=NeedAnswer.UNKNOWN, detail=why)
