"""Tests NodeHost, the agent's interface to its host."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from careen.core.facts.observation import NeedAnswer, SelfTest
from careen.host.commands import HostExec
from careen.host.need import HostNeed, Sources
from careen.host.node_host import LocalHost
from careen.host.reboot import RebootRefused, RebootRequested
from tests.patience import LONG_SECONDS


def host(root: Path) -> LocalHost:
    (root / "run").mkdir(exist_ok=True)
    (root / "boot").write_text("boot-1\n")
    return LocalHost(
        root=root,
        need=need_of(root),
        boot_id_file=root / "boot",
        how=HostExec.DIRECT,
        reboot_method="command",
        reboot_command="true",
        reboot_signal=39,
        reboot_seconds=LONG_SECONDS,
        test_seconds=LONG_SECONDS,
    )


def need_of(root: Path, **sources: Any) -> HostNeed:
    wanted = Sources(**{"files": ("/run/reboot-required",), "seconds": LONG_SECONDS, **sources})
    return HostNeed(wanted, root=root, how=HostExec.DIRECT)


async def test_the_sentinel_file_is_checked_unless_a_sentinel_command_is_set(tmp_path: Path) -> None:
    here = host(tmp_path)
    assert (await here.read_need()).answer is NeedAnswer.NO
    (tmp_path / "run/reboot-required").touch()
    assert (await here.read_need()).answer is NeedAnswer.YES
    commanded = need_of(tmp_path, command="sh -c 'exit 1'")
    assert commanded.has_commands
    assert (await commanded.ask()).answer is NeedAnswer.NO
    assert (await commanded.look()).answer is NeedAnswer.NO, "the sentinel command replaces the sentinel file"


async def test_a_command_line_is_split_as_a_shell_splits_it(tmp_path: Path) -> None:
    marker = tmp_path / "asked for it"
    assert await replace(host(tmp_path), reboot_command=f"touch '{marker}'").ask_reboot() == RebootRequested()
    assert marker.exists()


async def test_a_failed_reboot_command_is_reported_as_a_refusal(tmp_path: Path) -> None:
    answer = await replace(host(tmp_path), reboot_command="false").ask_reboot()
    assert isinstance(answer, RebootRefused)


def test_node_host_returns_the_boot_id_and_uptime_of_the_host(tmp_path: Path) -> None:
    here = host(tmp_path)
    assert here.read_boot_id() == "boot-1"
    assert 0 < here.uptime() <= here.uptime()


async def test_the_self_test_of_a_working_host_passes_and_reboots_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "rebooted"
    assert await replace(host(tmp_path), reboot_command=f"touch {marker}").test_reboot() == SelfTest()
    assert not marker.exists()


async def test_the_self_test_reports_missing_access_to_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = await replace(host(tmp_path), how=HostExec.NSENTER).test_reboot()
    assert found.obstacle.startswith("the agent cannot run commands on the host")


def a_process(folder: Path, *, blocked: int = 0, handled: int = 0, name: str = "systemd") -> Path:
    (folder / "proc/1").mkdir(parents=True, exist_ok=True)
    text = (
        f"Name:\t{name}\nPid:\t1\nSigQ:\t0/1\n"
        f"SigBlk:\t{blocked:016x}\nSigIgn:\t0000000000001000\nSigCgt:\t{handled:016x}\n"
    )
    (folder / "proc/1/status").write_text(text)
    return folder / "proc"


def an_inhibitor(folder: Path, *lines: str) -> None:
    (folder / "run/systemd/inhibit").mkdir(parents=True, exist_ok=True)
    (folder / "run/systemd/inhibit/1").write_text("\n".join(lines) + "\n")


async def test_the_self_test_checks_the_right_to_send_a_signal_without_sending_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    here = replace(host(tmp_path), reboot_method="signal", proc=a_process(tmp_path, blocked=1 << 38))
    assert await here.test_reboot() == SelfTest()
    assert sent == [(1, 0)]


async def test_the_self_test_passes_with_a_warning_if_the_kubelet_would_miss_the_shutdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "kill", lambda pid, number: None)
    an_inhibitor(tmp_path, "WHAT=shutdown", "MODE=delay", "WHO=kubelet")
    here = replace(host(tmp_path), reboot_method="signal", proc=a_process(tmp_path, blocked=1 << 38))
    found = await here.test_reboot()
    assert found.obstacle == ""
    assert "kubelet (delay); pods that are still on the node get no grace period" in found.warning
    assert (await host(tmp_path).test_reboot()).warning == "", (
        "systemctl reboot asks logind, which waits for the kubelet"
    )
