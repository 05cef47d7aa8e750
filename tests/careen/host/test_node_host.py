"""The host behind its port."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
