"""Tests how several probes decide whether the host needs a reboot. If one probe says yes, the host needs a reboot.
Probes with an unknown result are reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from careen.core.facts.observation import Need, NeedAnswer
from careen.host import package_managers, probes
from careen.host.commands import HostExec
from careen.host.need import HostNeed, Sources
from tests.patience import LONG_SECONDS

YES, NO, UNKNOWN = NeedAnswer.YES, NeedAnswer.NO, NeedAnswer.UNKNOWN
SENTINEL = "/run/reboot-required"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path


def need_of(root: Path, **sources: Any) -> HostNeed:
    return HostNeed(Sources(**{"seconds": LONG_SECONDS, **sources}), root=root, how=HostExec.DIRECT)


async def test_the_host_needs_a_reboot_if_one_of_several_sentinel_files_exists(root: Path) -> None:
    need = need_of(root, files=(SENTINEL, "/run/reboot-needed"))
    assert await need.look() == Need(
        answer=NO,
        detail="the sentinel file /run/reboot-required does not exist; "
        "the sentinel file /run/reboot-needed does not exist",
    )
    (root / "run/reboot-needed").touch()
    assert await need.look() == Need(answer=YES, detail="the sentinel file /run/reboot-needed exists")


async def test_an_unreadable_sentinel_makes_the_need_unknown_if_no_other_sentinel_exists(root: Path) -> None:
    need = need_of(root, files=(SENTINEL, "/gone/x"))
    assert (await need.look()).answer is UNKNOWN
    (root / "run/reboot-required").touch()
    asked = await need.look()
    assert asked.answer is YES
    assert "besides, the agent cannot look for the sentinel file /gone/x" in asked.detail


@pytest.mark.parametrize(
    ("listed", "pattern", "answer", "words"),
    [
        ("linux-image-6.1.0-21-amd64\n", None, YES, "the reboot is requested by linux-image-6.1.0-21-amd64"),
        ("a\na\n\n  b \n", None, YES, "the reboot is requested by a, b"),
        ("", None, YES, "exists"),
        (None, None, YES, "exists"),
        (
            "libc6\nlinux-image-6.1.0-21-amd64\n",
            "^linux-image-",
            YES,
            "the reboot is requested by linux-image-6.1.0-21-amd64",
        ),
        (
            "libc6\ndbus\n",
            "^linux-image-",
            NO,
            "exists, but --reboot-packages matches no package that requests the reboot: libc6, dbus",
        ),
        (None, "^linux-image-", UNKNOWN, "/run/reboot-required.pkgs is missing or empty"),
        ("\n \n", "^linux-image-", UNKNOWN, "/run/reboot-required.pkgs is missing or empty"),
        ("x" * 300 + "\n", None, YES, "x" * 255),
        ("\u202emoc.live\x1b[31m\n", None, YES, "the reboot is requested by"),
    ],
)
async def test_the_package_filter_applies_to_the_package_list_beside_the_sentinel(
    root: Path, listed: str | None, pattern: str | None, answer: NeedAnswer, words: str
) -> None:
    """The list has one package name on each line, as Debian's /etc/kernel/postinst.d/unattended-upgrades writes it."""
    (root / "run/reboot-required").touch()
    if listed is not None:
        (root / "run/reboot-required.pkgs").write_text(listed)
    need = await need_of(root, files=(SENTINEL,), packages=re.compile(pattern) if pattern else None).look()
    assert (need.answer, words in need.detail) == (answer, True), need
    assert "x" * 256 not in need.detail


async def test_no_package_list_except_reboot_required_pkgs_is_opened(root: Path) -> None:
    """A person who may edit the ConfigMap can set the paths of sentinel files. This person must not be able to choose
    which files of the host the agent copies into annotations of the Node."""
    (root / "run/shadow").touch()
    (root / "run/shadow.pkgs").write_text("a secret\n")
    assert "secret" not in (await need_of(root, files=("/run/shadow",)).look()).detail
    need = await need_of(root, files=("/run/shadow",), packages=re.compile("secret")).look()
    assert (need.answer, "a secret" in need.detail) == (UNKNOWN, False)


async def test_a_package_list_that_is_a_symlink_is_not_followed(root: Path) -> None:
    (root / "run/reboot-required").touch()
    (root / "secret").write_text("a secret\n")
    (root / "run/reboot-required.pkgs").symlink_to(root / "secret")
    assert "secret" not in (await need_of(root, files=(SENTINEL,)).look()).detail


async def test_file_probes_run_without_starting_a_command(root: Path) -> None:
    need = need_of(root, files=(SENTINEL,), probes=("sentinel", "suse", "uptime"), longest_uptime_seconds=1e12)
    assert not need.has_commands
    assert (await need.look()).answer is NO
    (root / "run/reboot-needed").touch()
    assert (await need.look()).answer is YES


async def test_the_result_of_a_command_probe_is_unknown_if_its_program_is_missing(root: Path) -> None:
    need = need_of(root, probes=("flatcar",))
    assert need.has_commands
    assert await need.look() == Need(answer=NO), "the probe flatcar reads no file"
    asked = await need.ask()
    assert (asked.answer, "update_engine_client" in asked.detail) == (UNKNOWN, True)


async def test_a_command_probe_reads_the_output_of_its_program(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "zypper"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$LC_ALL $*" = "C --non-interactive needs-rebooting" ] && exit 102\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert (await need_of(root, probes=("zypper",)).ask()).answer is YES


async def test_without_the_sentinel_probe_no_sentinel_is_checked(root: Path) -> None:
    (root / "run/reboot-required").touch()
    need = need_of(root, files=(SENTINEL,), command="true", probes=("suse",))
    assert not need.has_commands
    assert (await need.look()).answer is NO


async def test_a_running_package_manager_is_found_even_if_no_reboot_is_needed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person may request a reboot with `careen reboot` even if the host needs none."""
    monkeypatch.setattr(package_managers, "at_work", lambda where, *, proc: "dpkg (process 7)")
    need = need_of(root, files=(SENTINEL,))
    assert ((seen := await need.look()).answer, seen.package_manager) == (NO, "dpkg (process 7)")
    (root / "run/reboot-required").touch()
    assert (await need.look()).package_manager == "dpkg (process 7)"


def test_every_probe_is_a_file_probe_or_a_command_probe() -> None:
    for name, reach in probes.PROBES.items():
        if reach is probes.HostAccess.COMMAND:
            assert probes.running(name).ARGV
        elif name != probes.SENTINEL:
            assert callable(probes.looking(name))
