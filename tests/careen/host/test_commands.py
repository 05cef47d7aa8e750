"""Tests how careen runs commands on the host with a deadline, directly or through nsenter."""

from __future__ import annotations

import asyncio
import asyncio.base_subprocess
import gc
import os
import signal
import sys
import tracemalloc
from pathlib import Path

import pytest

from careen.host.commands import Exited, HostExec, NotFollowed, NotStarted, TimedOut, run_on_host
from tests.patience import LONG_SECONDS, growing, until


async def test_a_command_returns_its_output_errors_and_exit_code() -> None:
    outcome = await run_on_host(
        ["sh", "-c", "echo out; echo err >&2; exit 3"], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS
    )
    assert outcome == Exited(code=3, output="out", errors="err")


async def test_a_command_whose_program_is_missing_is_reported_as_not_started() -> None:
    outcome = await run_on_host(["/no/such"], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
    assert isinstance(outcome, NotStarted)


async def test_at_the_deadline_the_command_and_its_children_are_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    for seconds in growing(0.5):
        outcome = await run_on_host(
            ["sh", "-c", f"sleep 3000 & echo $! > {pid_file}; wait"], how=HostExec.DIRECT, deadline_seconds=seconds
        )
        if has_text(pid_file):
            break
    assert outcome == TimedOut(seconds)
    await gone(int(pid_file.read_text()))


async def test_a_background_process_with_open_pipes_does_not_block_the_caller(tmp_path: Path) -> None:
    """A reboot command may start a daemon that outlives the command and keeps the command's pipes open."""
    pid_file = tmp_path / "pid"
    left = (
        f'{sys.executable} -c \'import os, time; os.setsid(); open("{pid_file}", '
        '"w").write(str(os.getpid())); time.sleep(600)\''
    )
    for seconds in growing(2):
        outcome = await run_on_host(["sh", "-c", f"{left} & wait"], how=HostExec.DIRECT, deadline_seconds=seconds)
        if has_text(pid_file):
            break
    assert outcome == TimedOut(seconds)
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    await until(no_pipe_is_open)  # wait for its end while the event loop still runs


@pytest.mark.parametrize("holds", ["the command", "a process that it left"])
async def test_a_killed_command_that_does_not_end_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: str
) -> None:
    """SIGKILL waits until a hanging file system answers (state D). Here the signal is lost instead."""
    started, end = tmp_path / "started", tmp_path / "end"
    os.mkfifo(end)
    script = f"echo $$ >> {started}; " + (f"exec cat {end}" if holds == "the command" else f"cat {end} &")
    argv = ["sh", "-c", script]
    monkeypatch.setattr("careen.host.commands._END_SECONDS", 0.05)
    monkeypatch.setattr("careen.host.commands.os.killpg", lambda *_: None)
    for seconds in growing(0.5):
        if isinstance(await run_on_host(argv, how=HostExec.DIRECT, deadline_seconds=seconds), TimedOut):
            break
    await until(lambda: has_text(started))
    runs = started.read_text()
    for _ in range(5):
        again = await run_on_host(argv, how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
        assert again == NotFollowed(f"an earlier run, process {int(runs)}, was killed but has not ended yet")
    other = await run_on_host(["true"], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
    assert isinstance(other, Exited)
    assert started.read_text() == runs
    with end.open("w"):
        pass  # the file system answers, and the process ends
    await until(no_pipe_is_open)

    end.unlink()
    end.touch()  # `cat` of an empty file ends at once
    assert await run_on_host(argv, how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS) == Exited(
        code=0, output="", errors=""
    )


async def test_a_cancel_while_a_killed_run_does_not_end_does_not_forget_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancel comes in the two seconds after SIGKILL."""
    started, end = tmp_path / "started", tmp_path / "end"
    os.mkfifo(end)
    argv = ["sh", "-c", f"echo $$ >> {started}; exec cat {end}"]
    killed = asyncio.Event()
    monkeypatch.setattr("careen.host.commands._END_SECONDS", LONG_SECONDS)
    monkeypatch.setattr("careen.host.commands.os.killpg", lambda *_: killed.set())
    running = asyncio.ensure_future(run_on_host(argv, how=HostExec.DIRECT, deadline_seconds=0.5))
    await killed.wait()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    again = await run_on_host(argv, how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
    assert isinstance(again, NotFollowed)
    assert "was killed but has not ended yet" in again.why
    await until(lambda: has_text(started))
    with end.open("w"):
        pass
    await until(no_pipe_is_open)


async def test_a_command_is_killed_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    await cancel_after_start(pid_file, outlives_us=False)
    await gone(int(pid_file.read_text()))


async def test_a_reboot_command_is_not_killed_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    await cancel_after_start(pid_file, outlives_us=True)
    pid = int(pid_file.read_text())
    gc.collect()  # a process object without references is collected, and asyncio then kills its child
    await asyncio.sleep(0.1)
    os.kill(pid, 9)  # raises if it had ended
    while Path(
        f"/proc/{pid}"
    ).exists():  # until the loop has reaped it and closes its pipes; left open they would be reported in a later test
        await asyncio.sleep(0.01)
    await until(no_pipe_is_open)


def no_pipe_is_open() -> bool:
    """Return whether asyncio has closed the pipes of every child process. Tests wait until the result is True before
    they end. If a pipe were still open, Python would report the open pipe while a later test runs."""
    left = [each for each in gc.get_objects() if isinstance(each, asyncio.base_subprocess.BaseSubprocessTransport)]
    return all(each._proc is None for each in left)


async def cancel_after_start(pid_file: Path, *, outlives_us: bool) -> None:
    task = asyncio.create_task(
        run_on_host(
            ["sh", "-c", f"echo $$ > {pid_file}; exec sleep 3000"],
            how=HostExec.DIRECT,
            deadline_seconds=LONG_SECONDS,
            outlives_us=outlives_us,
        )
    )
    await until(lambda: has_text(pid_file))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def has_text(file: Path) -> bool:
    return file.exists() and bool(file.read_text().strip())


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def gone(pid: int) -> None:
    await until(lambda: is_gone(pid), lambda: f"the end of process {pid}")


@pytest.fixture
def nsenter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a program `nsenter` in a temporary folder that is first in PATH. Each test writes its own fake
    program to this path, because tests lack the rights that the real nsenter needs."""
    tool = tmp_path / "nsenter"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("careen.host.paths.PROC", tmp_path)  # the tests may run in a container without hostPID
    return tool


def write_tool(tool: Path, script: str) -> None:
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


async def test_nsenter_runs_the_command_in_the_mount_namespace_of_process_1(nsenter: Path) -> None:
    write_tool(nsenter, 'echo "$@"')
    assert await run_on_host(["systemctl", "reboot"], how=HostExec.NSENTER, deadline_seconds=LONG_SECONDS) == Exited(
        code=0, output="--mount=/proc/1/ns/mnt -- systemctl reboot", errors=""
    )


@pytest.mark.parametrize(
    "script",
    [
        "echo 'nsenter: reassociate to namespace failed: Operation not permitted' >&2; exit 1",
        "echo 'nsenter: failed to execute needs-restarting: No such file or directory' >&2; exit 127",
    ],
    ids=["the agent may not enter the namespace", "the host lacks the program"],
)
async def test_a_failure_of_nsenter_is_not_the_result_of_the_command(nsenter: Path, script: str) -> None:
    """nsenter exits with code 1 if it fails. For the sentinel command, exit code 1 would mean that the host needs no
    reboot."""
    write_tool(nsenter, script)
    outcome = await run_on_host(["needs-restarting", "-r"], how=HostExec.NSENTER, deadline_seconds=LONG_SECONDS)
    assert isinstance(outcome, NotStarted)
    assert outcome.why.startswith("nsenter: ")


async def test_a_missing_nsenter_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = await run_on_host(["true"], how=HostExec.NSENTER, deadline_seconds=LONG_SECONDS)
    assert isinstance(outcome, NotStarted)
    assert "the program nsenter cannot be started" in outcome.why


FLOOD = 64 * 1024 * 1024


async def test_a_large_output_is_read_completely_and_kept_in_part() -> None:
    """The agent reads all output, because a full pipe would block the command. To save memory, it keeps only the
    beginning and the end.
    """
    program = (
        f"import sys; w = sys.stdout.write; w('first'); [w('x' * 65536) for _ in range({FLOOD} // 65536)]; w('last');"
        f"sys.stderr.write('one' + 'y' * {FLOOD} + 'two')"
    )
    tracemalloc.start()
    try:
        outcome = await run_on_host([sys.executable, "-c", program], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(outcome, Exited)
    assert outcome.code == 0
    assert (outcome.output[:6], outcome.output[-5:]) == ("firstx", "xlast")
    assert (outcome.errors[:4], outcome.errors[-4:]) == ("oney", "ytwo")
    assert len(outcome.output) < 3_000
    assert len(outcome.errors) < 3_000
    assert peak < FLOOD // 16


async def test_a_command_with_endless_output_is_killed_at_the_deadline() -> None:
    outcome = await run_on_host(["yes"], how=HostExec.DIRECT, deadline_seconds=0.5)
    assert outcome == TimedOut(0.5)


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 1999, 2000, 2001, 2002, 70_000])
async def test_output_is_kept_completely_up_to_the_limit(size: int) -> None:
    program = f"import sys; sys.stdout.write(''.join(chr(97 + n % 26) for n in range({size})))"
    outcome = await run_on_host([sys.executable, "-c", program], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
    assert isinstance(outcome, Exited)
    whole = "".join(chr(97 + n % 26) for n in range(size))
    assert outcome.output == (whole if size <= 2000 else f"{whole[:1000]} ... {whole[-1000:]}")
