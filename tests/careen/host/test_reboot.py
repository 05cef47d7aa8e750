"""Tests how the agent requests a reboot of the host. The result says whether the host accepted the request, certainly
does not reboot (a refused reboot), or may reboot.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from careen.host import reboot
from careen.host.commands import HostExec
from careen.host.reboot import RebootAnswer, RebootRefused, RebootRequested, RebootUnclear
from tests.patience import LONG_SECONDS


async def by(script: str, seconds: float = LONG_SECONDS) -> RebootAnswer:
    return await reboot.by_command(["sh", "-c", script], how=HostExec.DIRECT, deadline_seconds=seconds)


async def test_a_successful_reboot_command_means_that_the_host_accepted_the_request() -> None:
    assert await by("exit 0") == RebootRequested()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no rights >&2; exit 1", "no rights"),
        ("echo said; exit 4", "failed with exit code 4: said"),
        ("exit 4", "the command printed nothing"),
    ],
)
async def test_a_failed_reboot_command_is_reported_as_a_refused_reboot(script: str, words: str) -> None:
    answer = await by(script)
    assert isinstance(answer, RebootRefused)
    assert words in answer.why


async def test_a_missing_reboot_command_is_reported_as_a_refused_reboot() -> None:
    assert isinstance(
        await reboot.by_command(["/no/such"], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS), RebootRefused
    )


@pytest.mark.parametrize("script", ["kill -TERM $$", "kill -KILL $$", "exit 143", "exit 137"])
async def test_a_reboot_command_killed_by_a_signal_may_still_cause_a_reboot(script: str) -> None:
    assert isinstance(await by(script), RebootUnclear)


async def test_a_reboot_command_that_does_not_end_may_still_cause_a_reboot() -> None:
    assert isinstance(await by("sleep 30", 0.2), RebootUnclear)


def test_the_reboot_signal_is_sent_to_the_given_process() -> None:
    program = "import signal, sys; print('ready', flush=True); sys.exit(signal.sigwait({39}) - 39)"
    code = f"import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {{39}})\n{program}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert reboot.by_signal(39, pid=process.pid) == RebootRequested()
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(1, "Operation not permitted"), "CAP_KILL and hostPID"),
        (ProcessLookupError(3, "No such process"), "No such process"),
    ],
)
def test_a_reboot_signal_that_cannot_be_sent_is_reported_as_a_refused_reboot(
    monkeypatch: pytest.MonkeyPatch, error: OSError, words: str
) -> None:
    sent: list[tuple[int, int]] = []

    def kill(pid: int, number: int) -> None:
        sent.append((pid, number))
        raise error

    monkeypatch.setattr(os, "kill", kill)
    answer = reboot.by_signal(signal.SIGRTMIN + 5)
    assert isinstance(answer, RebootRefused)
    assert words in answer.why
    assert sent == [(1, 39)]


# ---- checks before the reboot ----


async def why_not(*argv: str) -> str:
    return await reboot.why_not_by_command(argv, how=HostExec.DIRECT, deadline_seconds=20)


@pytest.mark.parametrize("program", ["true", "sh", "/bin/sh", "env"])
async def test_a_reboot_command_whose_program_exists_passes_the_check(program: str) -> None:
    assert await why_not(program, "--whatever") == ""


@pytest.mark.parametrize(
    "line", [["sh", "-c", "/no/such/program now"], ["env", "A=b", "/no/such"], ["nsenter", "--", "/no/such"]]
)
async def test_the_reboot_check_ignores_the_arguments_of_a_wrapper_program(line: list[str]) -> None:
    if shutil.which(line[0]):
        assert await why_not(*line) == ""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("/no/such/program", "the host has no program /no/such/program"),
        ("no-such-program", "the host has no program no-such-program"),
        ("exec", "the host has no program exec"),
        ("/etc", "/etc on the host is a folder"),
        ("{folder}/reboot.sh", "reboot.sh on the host is not executable"),
        ("{folder}/dangling", "the host has no program"),
        ("{folder}/with space and 'quote", ""),
    ],
)
async def test_the_reboot_check_reports_a_program_that_cannot_run(tmp_path: Path, program: str, words: str) -> None:
    (tmp_path / "reboot.sh").write_text("#!/bin/sh\n")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    (tmp_path / "with space and 'quote").write_text("#!/bin/sh\n")
    (tmp_path / "with space and 'quote").chmod(0o755)
    found = await why_not(program.format(folder=tmp_path))
    assert words in found
    assert bool(found) is bool(words)


async def test_the_reboot_check_looks_for_a_program_in_every_folder_of_path(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for place in ("a/goes-down", "c"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/goes-down").write_text("")
    monkeypatch.setenv("PATH", f"{tmp_path}/a:{tmp_path}/b:{tmp_path}/c:/usr/bin:/bin")
    assert "on the host is not executable" in await why_not("goes-down")
    (tmp_path / "c/goes-down").write_text("#!/bin/sh\n")
    (tmp_path / "c/goes-down").chmod(0o755)
    assert await why_not("goes-down") == ""


async def test_the_reboot_check_is_inconclusive_on_a_host_without_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await why_not("/no/such/program") == ""


async def test_the_reboot_check_is_inconclusive_on_a_slow_host() -> None:
    assert await reboot.why_not_by_command(["/no/such"], how=HostExec.DIRECT, deadline_seconds=0.0) == ""


def nsenter_that(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (folder / "nsenter").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nsenter").chmod(0o755)
    monkeypatch.setattr("careen.host.paths.PROC", folder)  # the tests may run in a container without hostPID
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "echo 'nsenter: cannot open /proc/1/ns/mnt: Permission denied' >&2; exit 1",
            "the agent cannot run commands on the host",
        ),
        ("echo 'nsenter: failed to execute sh: No such file or directory' >&2; exit 127", ""),
        ('shift; shift; exec "$@"', "the host has no program /no/such/program"),
    ],
)
async def test_the_reboot_check_distinguishes_a_failing_nsenter_from_a_missing_shell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    words: str,
) -> None:
    nsenter_that(tmp_path, monkeypatch, script)
    found = await reboot.why_not_by_command(["/no/such/program"], how=HostExec.NSENTER, deadline_seconds=20)
    assert words in found
    assert bool(found) is bool(words)


def a_process(folder: Path, text: str) -> Path:
    (folder / "1").mkdir()
    (folder / "1/status").write_text(text)
    return folder


BIT = 1 << (39 - 1)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (f"Name:\tsystemd\nSigBlk:\t{BIT:016x}\nSigCgt:\t0000000000000000\n", ""),
        (f"Name:\tinit\nSigBlk:\t0000000000000000\nSigCgt:\t{BIT | 2:016x}\n", ""),
        (
            "Name:\tpython3\nSigBlk:\t0000000000000000\nSigCgt:\t0000000000004002\n",
            "process 1 (python3) does not handle signal 39",
        ),
        (
            f"Name:\tinit\nSigBlk:\t{BIT << 1:016x}\nSigCgt:\t{BIT >> 1:016x}\n",
            "process 1 (init) does not handle signal 39",
        ),
        ("Name:\tinit\n", ""),
        ("", ""),
    ],
)
def test_the_reboot_check_reports_a_process_1_without_a_signal_handler(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: str,
    words: str,
) -> None:
    """Without hostPID, process 1 is the agent itself. The kernel does not deliver a signal to process 1 if it has no
    handler for the signal.
    """
    monkeypatch.setattr(os, "kill", lambda pid, number: None)
    found = reboot.why_not_by_signal(39, proc=a_process(tmp_path, status))
    assert words in found
    assert bool(found) is bool(words)


def test_the_reboot_check_is_inconclusive_if_the_process_state_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "kill", lambda pid, number: None)
    assert reboot.why_not_by_signal(39, proc=tmp_path) == ""


def test_the_reboot_check_reports_a_missing_right_to_send_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(pid: int, number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", kill)
    assert "CAP_KILL and hostPID" in reboot.why_not_by_signal(39)
