"""The need, from sentinels and probes, and whether a package manager is working. Files are cheap and read in every turn
that needs the answer; commands run once per period (`agent/need_watch.py`)."""

from __future__ import annotations

import asyncio
import os
import shlex
from dataclasses import replace
from pathlib import Path

from careen.core.facts.observation import Need, NeedAnswer
from careen.core.facts.policy import Pattern
from careen.host import boot_id, package_managers, probes, sentinel
from careen.host.commands import HostExec, run_on_host
from careen.host.paths import under_root, why_not_the_host
from careen.host.probes import HostAccess, HostFacts
from careen.host.probes.said import together
from scheduler_core.values import Value


class Sources(Value, kw_only=True):
    """The configured sources. The probe `sentinel` runs `command`, or without one checks `files`. With `packages`, a
    file counts only if the list of packages beside it has a match. The probe `uptime` says yes after
    `longest_uptime_seconds`."""

    files: tuple[str, ...] = ()
    command: str = ""
    probes: tuple[str, ...] = (probes.SENTINEL,)
    packages: Pattern | None = None
    longest_uptime_seconds: float = 0.0
    seconds: float
    """The deadline of each source."""


class HostNeed:
    """Reads the files and runs the commands of one host's need."""

    def __init__(self, sources: Sources, *, root: Path, how: HostExec, proc: Path = Path("/proc")) -> None:
        self._sources = sources
        self._root = root
        self._how = how
        self._proc = proc
        has_sentinel = probes.SENTINEL in sources.probes
        self._command = sources.command if has_sentinel else ""
        self._paths = sources.files if has_sentinel and not self._command else ()
        named = [(name, probes.PROBES[name]) for name in sources.probes if name != probes.SENTINEL]
        self._looking = tuple(name for name, reach in named if reach is not HostAccess.COMMAND)
        self._running = tuple(name for name, reach in named if reach is HostAccess.COMMAND)
        what = f"the sentinel file {', '.join(self._paths)}" if self._paths else "the files of the probes"
        self._files = sentinel.FileLook(self._look_now, what, deadline_seconds=sources.seconds)

    @property
    def has_commands(self) -> bool:
        """Whether a sentinel or a probe is a command."""
        return bool(self._command or self._running)

    @property
    def longest_uptime_seconds(self) -> float | None:
        """The uptime at which the probe `uptime` says yes; None without this probe."""
        return self._sources.longest_uptime_seconds if "uptime" in self._looking else None

    def watched(self) -> list[str]:
        """Every path whose change may change the answer of `look`: without a change there, the answer stays. Raises
        OSError if they cannot be listed."""
        paths = [*self._paths, *(f"{path}.pkgs" for path in self._paths)]
        for name in self._looking:
            paths += probes.watched(name)
        found = [str(under_root(self._root, path)) for path in paths]
        for folder in probes.FOLDERS if "kernel" in self._looking else ():
            # A kernel's image may appear after its folder.
            here = under_root(self._root, f"{folder}/any").parent
            found += [str(here), *(str(each) for each in sorted(here.iterdir()))] if here.exists() else [str(here)]
        return list(dict.fromkeys(found))

    async def look(self) -> Need:
        """The combined answer of what runs no command, no if there is none of that; and always the package manager at
        work, because a person may request a reboot at any time."""
        return await self._files.read()

    async def ask(self) -> Need:
        """Runs the commands, each with its own deadline."""
        return together(await asyncio.gather(*self._asked()))

    def _asked(self) -> list[asyncio.Task[Need]]:
        asked = [asyncio.create_task(self._run(name)) for name in self._running]
        if self._command:
            argv, seconds = shlex.split(self._command), self._sources.seconds
            asked.append(asyncio.create_task(sentinel.run_command(argv, how=self._how, deadline_seconds=seconds)))
        return asked

    async def _run(self, name: str) -> Need:
        probe = probes.running(name)
        return probe.judge(await run_on_host(probe.ARGV, how=self._how, deadline_seconds=self._sources.seconds))

    def _look_now(self) -> Need:
        """In a thread, because a file system may hang."""
        if self._root.is_relative_to(self._proc / "1") and (why := why_not_the_host(self._proc)):
            return Need(answer=NeedAnswer.UNKNOWN, detail=f"the agent cannot see the host: {why}")
        found = [sentinel.read_file(self._root, path, self._sources.packages) for path in self._paths]
        found += [probes.looking(name)(self._facts()) for name in self._looking]
        need = together(found) if found else Need(answer=NeedAnswer.NO)
        return replace(need, package_manager=package_managers.at_work(self._root, proc=self._proc))

    def _facts(self) -> HostFacts:
        return HostFacts(
            root=self._root,
            release=os.uname().release,
            uptime_seconds=boot_id.uptime_seconds(),
            longest_uptime_seconds=self._sources.longest_uptime_seconds,
        )
