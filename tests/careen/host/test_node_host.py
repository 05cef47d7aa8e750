"""The host behind its port."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from careen.core.observation import NeedAnswer
from careen.host.commands import HostExec
from careen.host.node_host import LocalHost
from careen.host.reboot import Asked, Refused


def host(root: Path) -> LocalHost:
    (root / "run").mkdir(exist_ok=True)
    (root / "boot").write_text("boot-1\n")
    return LocalHost(
        root=root, sentinel_file="/run/reboot-required", sentinel_command="", sentinel_seconds=20, boot_id_file=root / "boot",
        how=HostExec.DIRECT, reboot_method="command", reboot_command="true", reboot_signal=39, reboot_seconds=20,
    )


async def test_the_file_is_asked_unless_there_is_a_command(tmp_path: Path) -> None:
    here = host(tmp_path)
    assert (await here.read_need()).answer is NeedAnswer.NO
    (tmp_path / "run/reboot-required").touch()
    assert (await here.read_need()).answer is NeedAnswer.YES
    assert (await replace(here, sentinel_command="sh -c 'exit 1'").read_need()).answer is NeedAnswer.NO


async def test_a_command_line_is_split_as_a_shell_would(tmp_path: Path) -> None:
    marker = tmp_path / "asked for it"
    assert await replace(host(tmp_path), reboot_command=f"touch '{marker}'").ask_reboot() == Asked()
    assert marker.exists()


async def test_the_method_decides_how_it_is_asked(tmp_path: Path) -> None:
    answer = await replace(host(tmp_path), reboot_command="false").ask_reboot()
    assert isinstance(answer, Refused)


def test_boot_and_uptime_are_the_hosts(tmp_path: Path) -> None:
    here = host(tmp_path)
    assert here.read_boot_id() == "boot-1"
    assert 0 < here.uptime() <= here.uptime()


async def test_a_host_in_order_passes_its_self_test_and_is_not_rebooted(tmp_path: Path) -> None:
    marker = tmp_path / "rebooted"
    assert await replace(host(tmp_path), reboot_command=f"touch {marker}").self_test() == ()
    assert not marker.exists()


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"sentinel_file": "/no/such/folder/reboot-required"}, "cannot look for the sentinel file"),
        ({"sentinel_command": "no-such-program"}, "the sentinel command could not be run"),
        ({"boot_id_file": Path("/no/such/boot_id")}, "cannot read the boot id"),
        ({"reboot_command": "/no/such/systemctl reboot"}, "the host has no program /no/such/systemctl"),
    ],
)
async def test_what_would_show_only_on_the_day_of_the_reboot_shows_at_the_start(tmp_path: Path, broken: dict[str, Any], words: str) -> None:
    (problem,) = await replace(host(tmp_path), **broken).self_test()
    assert words in problem


async def test_without_a_way_onto_the_host_the_self_test_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (problem,) = await replace(host(tmp_path), how=HostExec.NSENTER).self_test()
    assert problem.startswith("commands cannot be run on the host")


async def test_the_right_to_send_a_signal_is_tried_without_sending_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    assert await replace(host(tmp_path), reboot_method="signal").self_test() == ()
    assert sent == [(1, 0)]
