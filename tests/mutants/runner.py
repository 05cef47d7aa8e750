"""Runs the tests against one mutant (the code with one mistake) after another, each in a forked process that has
already loaded everything.

This is a pytest plugin. pytest collects the tests. For each mutant, the plugin forks, replaces the code of the mutated
function, and runs the tests that reach this function until a test fails: the test kills the mutant. A fork takes some
ten milliseconds, so most mutants are killed within a second.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from careen.core.gates.question import Gate
from tests.mutants.mutant import Mutant, codes
from tests.mutants.reach import Reach, Record, record

_TIMES_AS_LONG = 10.0
_MEMORY_BYTES = 2 * 2**30  # in addition to the process's memory: a mutant may allocate for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one mutant. `killed_by` is the test that failed, or empty if no test failed. `tests_reaching` is
    the number of tests that run the mutated lines.
    """

    killed_by: str = ""
    tests_run: int = 0
    tests_reaching: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for the tests of one mutant.

    `most_seconds` limits the processor time of all tests together. The fastest tests run first. A test that never ends
    is stopped after ten times its usual processor time, but not before `least_seconds`. A mutant that only waits uses
    no processor time, so it is stopped when it has made no progress for `idle_seconds` of real time.
    """

    processes: int = 2
    most_seconds: float = 90.0
    least_seconds: float = 15.0
    idle_seconds: float = 600.0


class MutantRunner:
    """The pytest plugin that runs the mutants and calls `report` with each result."""

    def __init__(
        self, mutants: Sequence[Mutant], limits: Limits, *, record: Path, report: Callable[[Mutant, Outcome], None]
    ) -> None:
        self._mutants, self._limits, self._record, self._report = mutants, limits, record, report

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Turn off hypothesis' shrinking, because the first failing example suffices. Turn off its randomness, so that
        each run kills the same mutants.
        """
        from hypothesis import (
            Phase,
            settings,
        )  # imported here, because pytest warns if hypothesis is imported before pytest is configured

        settings.register_profile(
            "mutants", settings(derandomize=True, database=None, phases=(Phase.explicit, Phase.generate))
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants instead of pytest's own loop."""
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        items = {item.nodeid: item for item in session.items}
        reach = self._reach(items)
        jobs = ((mutant, functools.partial(_test_one, mutant, reach, items, self._limits)) for mutant in self._mutants)
        for mutant, found, seconds in _in_forks(jobs, self._limits):
            self._report(mutant, Outcome(**found, seconds=seconds))
        return True

    def _reach(self, items: Mapping[str, pytest.Item]) -> Reach:
        known = Record(self._record)
        stale = known.stale({test.partition("::")[0] for test in items})
        todo = [item for item in items.values() if item.nodeid.partition("::")[0] in stale]
        if stale:
            print(f"{len(todo)} tests: recording which lines each test reaches", file=sys.stderr, flush=True)
            shares = [todo[share :: self._limits.processes] for share in range(self._limits.processes)]
            jobs = ((share, functools.partial(record, share, _passes)) for share in shares)
            found = [answer for _, answer, _ in _in_forks(jobs, self._limits)]
            known.merge(stale, found)
            for test in (test for each in found for test in each["failed"]):
                print(f"skipping a test that fails even without a mutant: {test}", file=sys.stderr, flush=True)
        return known.reach()


def _test_one(mutant: Mutant, reach: Reach, items: Mapping[str, pytest.Item], limits: Limits) -> dict[str, Any]:
    """Apply the mutant in a fork, and run the tests until one fails."""
    tests = [test for test in reach.tests_of(mutant) if test in items]
    _make(mutant)
    spent = 0.0
    for run, test in enumerate(tests):
        spent += reach.seconds[test]
        if spent > limits.most_seconds and run:
            return {"tests_run": run, "tests_reaching": len(tests)}
        _bound_processor_time(max(limits.least_seconds, _TIMES_AS_LONG * reach.seconds[test]))
        _note(test)
        if not _passes(items[test]):
            return {"killed_by": test, "tests_run": run + 1, "tests_reaching": len(tests)}
    return {"tests_run": len(tests), "tests_reaching": len(tests)}


def _make(mutant: Mutant) -> None:
    """Replace the code inside the function object, because other modules have already imported the function."""
    found: Any = importlib.import_module(mutant.module)
    for name in mutant.function.split("."):
        found = vars(found)[name]
    found = found.question if isinstance(found, Gate) else found
    found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
    assert isinstance(found, FunctionType), f"{mutant.at} is not a plain function"
    _, found.__code__ = codes(mutant)


def _passes(item: pytest.Item) -> bool:
    """Run one test with all its fixtures, and return whether it passed. Also tears down the fixtures of its module and
    session.
    """
    reports = []

    class Heard:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            reports.append(report)

    heard = Heard()
    item.config.pluginmanager.register(heard)
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        item.config.pluginmanager.unregister(heard)
    item.session.shouldfail = item.session.shouldstop = False
    return not any(report.failed for report in reports)


def _bound_processor_time(seconds: float) -> None:
    """Make the kernel end this process with SIGXCPU when it has used this much more processor time."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _limit(resource.RLIMIT_CPU, math.ceil(used + seconds))


def _limit(what: int, amount: int) -> None:
    resource.setrlimit(what, (amount, resource.getrlimit(what)[1]))


# ---- forks ----

_OUT_OF_MEMORY = 3
_NOTE = "note"  # the file in which a fork notes its current test, in case it is killed


def _in_forks(
    jobs: Iterable[tuple[Any, Callable[[], dict[str, Any]]]], limits: Limits
) -> Iterator[tuple[Any, dict[str, Any], float]]:
    """Run each job in a fork, at most `limits.processes` at once. Yield the result and the duration of each job when it
    ends.
    """
    waiting, running = iter(jobs), {}
    with tempfile.TemporaryDirectory(prefix="careen-mutants-", ignore_cleanup_errors=True) as scratch:
        try:
            while True:
                while len(running) < limits.processes and (job := next(waiting, None)) is not None:
                    folder = Path(tempfile.mkdtemp(dir=scratch))
                    process = _fork(job[1], folder)
                    running[process] = (job[0], _Fork(process, folder))
                if not running:
                    return
                process, status = _next_to_end([fork for _, fork in running.values()], limits.idle_seconds)
                key, fork = running.pop(process)
                yield key, _answer(fork, status), time.monotonic() - fork.began
                shutil.rmtree(fork.folder, ignore_errors=True)
        finally:
            for process in running:
                os.kill(process, signal.SIGKILL)


@dataclass(slots=True)
class _Fork:
    """A running job, and the time of its last progress."""

    process: int
    folder: Path
    began: float = field(default_factory=time.monotonic)
    progress: tuple[str, int] = ("", 0)
    progressed: float = field(default_factory=time.monotonic)
    is_idle: bool = False


_LOOK_SECONDS = 0.02


def _next_to_end(forks: Sequence[_Fork], idle_seconds: float) -> tuple[int, int]:
    """Wait until one of these processes ends, and return its id and status. Does not wait for other child processes."""
    while True:
        for fork in forks:
            process, status = os.waitpid(fork.process, os.WNOHANG)
            if process:
                return process, status
            _end_if_idle(fork, idle_seconds)
        time.sleep(_LOOK_SECONDS)


def _end_if_idle(fork: _Fork, idle_seconds: float) -> None:
    progress = (test := _current_test(fork), _processor_seconds(fork.process))
    if progress != fork.progress or not test:
        fork.progress, fork.progressed = progress, time.monotonic()
    elif time.monotonic() - fork.progressed > idle_seconds and not fork.is_idle:
        fork.is_idle = True
        os.kill(fork.process, signal.SIGKILL)


def _current_test(fork: _Fork) -> str:
    note = fork.folder / _NOTE
    return note.read_text() if note.exists() else ""


def _processor_seconds(process: int) -> int:
    """Return the processor time of a process in whole seconds, or 0 if the process is not in /proc."""
    stat = Path(f"/proc/{process}/stat")
    fields = stat.read_text().rpartition(")")[2].split() if stat.exists() else ["0"] * 20
    return sum(map(int, fields[11:13])) // os.sysconf("SC_CLK_TCK")  # utime and stime


def _answer(fork: _Fork, status: int) -> dict[str, Any]:
    folder = fork.folder
    if (folder / "answer").exists():
        answer: dict[str, Any] = json.loads((folder / "answer").read_text())
        return answer
    test = _current_test(fork)
    if test and (os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == _OUT_OF_MEMORY):
        is_endless = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
        why = "never ends: it reached the limit of processor time" if is_endless else f"the process died: {status}"
        why = "waits for ever" if fork.is_idle else why
        return {"killed_by": f"{test} ({why})"}
    raise SystemExit(f"the process of a mutant ended with status {status} {test}:\n{(folder / 'output').read_text()}")


def _fork(job: Callable[[], dict[str, Any]], folder: Path) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None
        _limit(resource.RLIMIT_AS, _used_bytes() + _MEMORY_BYTES)
        global _noted  # noqa: PLW0603 - one per process, known only after the fork
        _noted = folder / _NOTE
        answer = json.dumps(job())
        (folder / "part").write_text(answer)
        (folder / "part").rename(folder / "answer")
        code = 0
    except MemoryError:
        code = _OUT_OF_MEMORY
    except BaseException:  # the parent reports any error
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


_noted = Path(os.devnull)


def _note(test: str) -> None:
    _noted.write_text(test)


def _used_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 2**18
    return pages * resource.getpagesize()
