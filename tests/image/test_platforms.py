"""Tests that the packages in requirements.lock can be installed on every released platform without a compiler."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.image.conftest import ROOT
from tests.patience import run

pytestmark = pytest.mark.image

MAKEFILE = (ROOT / "mk" / "image.mk").read_text()
MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}


def platforms() -> list[str]:
    (text,) = re.findall(r"^PLATFORMS \?= (.*)$", MAKEFILE, re.MULTILINE)
    return text.split(",")


@pytest.mark.parametrize("platform", platforms())
def test_every_locked_package_has_a_wheel_for_each_platform(platform: str, tmp_path: Path) -> None:
    done = run([str(ROOT / "mk" / "image" / "resolve"), MACHINES[platform], str(tmp_path)], cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    wheels = [path.name for path in tmp_path.iterdir()]
    assert any(name.startswith("numpy-") and name.endswith(f"_{MACHINES[platform]}.whl") for name in wheels)
    assert not [name for name in wheels if not name.endswith((f"_{MACHINES[platform]}.whl", "-none-any.whl"))]


def test_a_locked_package_without_a_wheel_is_refused(tmp_path: Path) -> None:
    done = run([str(ROOT / "mk" / "image" / "resolve"), "m68k", str(tmp_path)], cwd=ROOT)
    assert done.returncode != 0
    assert "No matching distribution found" in done.stderr
