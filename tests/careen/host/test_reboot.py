"""Asking the host to reboot, and what is certain afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from careen.host import reboot
from careen.host.commands import HostExec
from careen.host.reboot import Answer, Asked, Refused, Unclear


async def by(script: str, seconds: float = 20) -> Answer:
    return await reboot.by_command(["sh", "-c", script], how=HostExec.DIRECT, deadline_seconds=seconds)


async def test_a_command_that_succeeds_was_heard() -> None:
    assert await by("exit 0") == Asked()


@pytest.mark.parametrize(("script", "words"), [("echo no rights >&2; exit 1", "no rights"), ("echo said; exit 4", "exit code 4: said"), ("exit 4", "it printed nothing")])
async def test_a_command_that_fails_certainly_reboots_nothing(script: str, words: str) -> None:
    answer = await by(script)
    assert isinstance(answer, Refused)
    assert words in answer.why


async def test_a_command_that_is_missing_certainly_reboots_nothing() -> None:
    assert isinstance(await reboot.by_command(["/no/such"], how=HostExec.DIRECT, deadline_seconds=20), Refused)


@pytest.mark.parametrize("script", ["kill -TERM $$", "kill -KILL $$", "exit 143", "exit 137"])
async def test_a_command_that_a_signal_ended_may_have_been_ended_by_the_shutdown(script: str) -> None:
    assert isinstance(await by(script), Unclear)


async def test_a_command_that_does_not_end_may_reboot_yet() -> None:
    assert isinstance(await by("sleep 30", 0.2), Unclear)


def test_a_signal_reaches_the_process() -> None:
    program = "import signal, sys; print('ready', flush=True); sys.exit(signal.sigwait({39}) - 39)"
    code = f"import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {{39}})\n{program}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert reboot.by_signal(39, pid=process.pid) == Asked()
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [(PermissionError(1, "Operation not permitted"), "CAP_KILL and hostPID"), (ProcessLookupError(3, "No such process"), "No such process")],
)
def test_a_signal_that_cannot_be_sent_certainly_reboots_nothing(monkeypatch: pytest.MonkeyPatch, error: OSError, words: str) -> None:
    sent: list[tuple[int, int]] = []

    def kill(pid: int, number: int) -> None:
        sent.append((pid, number))
        raise error

    monkeypatch.setattr(os, "kill", kill)
    answer = reboot.by_signal(signal.SIGRTMIN + 5)
    assert isinstance(answer, Refused)
    assert words in answer.why
    assert sent == [(1, 39)]
