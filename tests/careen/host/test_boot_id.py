"""Which boot, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from careen.core.facts.observation import Unknown
from careen.host.boot_id import DEFAULT_FILE, read_boot_id, uptime_seconds


def test_the_kernel_tells_its_boot_id() -> None:
    assert read_boot_id(Path(DEFAULT_FILE)) == Path(DEFAULT_FILE).read_text().strip()


@pytest.mark.parametrize("content", [None, b"", b"  \n", b"\xff\xfe"])
def test_a_boot_id_that_cannot_be_read_is_unknown_and_names_the_file(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "boot_id"
    if content is not None:
        file.write_bytes(content)
    boot = read_boot_id(file)
    assert isinstance(boot, Unknown)
    assert str(file) in boot.why


def test_uptime_is_the_hosts() -> None:
    before = float(Path("/proc/uptime").read_text().split()[0])
    assert before - 0.02 <= uptime_seconds() <= before + 60
