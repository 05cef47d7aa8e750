"""Tests how careen reads the host's boot id and uptime."""

from __future__ import annotations

from pathlib import Path

import pytest

from careen.core.facts.observation import Unknown
from careen.host.boot_id import DEFAULT_FILE, SoftReboots, read_boot_id, uptime_seconds
from careen.host.commands import HostExec
from tests.patience import LONG_SECONDS


def test_the_boot_id_is_read_from_the_kernel() -> None:
    assert read_boot_id(Path(DEFAULT_FILE)) == Path(DEFAULT_FILE).read_text().strip()


@pytest.mark.parametrize("content", [None, b"", b"  \n", b"\xff\xfe"])
def test_an_unreadable_boot_id_is_unknown_and_the_reason_shows_the_file(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "boot_id"
    if content is not None:
        file.write_bytes(content)
    boot = read_boot_id(file)
    assert isinstance(boot, Unknown)
    assert str(file) in boot.why


def test_the_uptime_is_read_from_the_host() -> None:
    before = float(Path("/proc/uptime").read_text().split()[0])
    assert before - 0.02 <= uptime_seconds() <= before + 60


# systemd's own test of it, TEST-82-SOFTREBOOT, reads the property SoftRebootsCount of org.freedesktop.systemd1.Manager;
# `systemctl show --property=NAME --value` prints its value alone, and nothing for a property that it does not know.
@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("echo 0", "boot-1+soft-reboots=0"),
        ("echo 3", "boot-1+soft-reboots=3"),
        ("echo", "systemd on the host does not count soft reboots"),
        ("echo -1", "the host's count of soft reboots cannot be read"),
        ("echo ٣", "the host's count of soft reboots cannot be read"),
        ("echo 3; exit 1", "the host's count of soft reboots cannot be read"),
    ],
)
async def test_the_boot_id_includes_the_number_of_soft_reboots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, found: str
) -> None:
    program = tmp_path / "systemctl"
    program.write_text(f'#!/bin/sh\n[ "$*" = "show --property=SoftRebootsCount --value" ] || exit 9\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    soft = SoftReboots(HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
    assert isinstance(soft.added_to("boot-1"), Unknown), "not read yet"
    await soft.read()
    boot = soft.added_to("boot-1")
    assert found in (boot.why if isinstance(boot, Unknown) else boot)
    assert soft.added_to(Unknown("x")) == Unknown("x")


async def test_the_number_of_soft_reboots_is_read_again_until_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    soft = SoftReboots(HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
    assert isinstance(await soft.read(), Unknown)
    (tmp_path / "systemctl").write_text("#!/bin/sh\necho 1\n")
    (tmp_path / "systemctl").chmod(0o755)
    assert await soft.read() == 1
    (tmp_path / "systemctl").unlink()
    assert await soft.read() == 1
