"""Tests how shutdown inhibitors are read from the files of systemd-logind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from careen.host.inhibitors import Inhibitor, of_shutdown

# As logind of systemd 252 and 256 write them.
KUBELET = """# This is private data. Do not parse.
WHAT=shutdown
MODE=delay
UID=0
PID=1079
WHO=kubelet
WHY=Kubelet\\x20needs\\x20time\\x20to\\x20handle\\x20node\\x20shutdown
FIFO=/run/systemd/inhibit/4.ref
"""
SLEEP = "WHAT=sleep\nMODE=delay\nUID=0\nPID=7\nWHO=NetworkManager\nWHY=x\n"
BOTH = 'WHAT=shutdown:sleep:idle\nMODE=block\nUID=0\nPID=8\nPIDFDID=99\nWHO="unattended-upgrades"\nWHY="x"\n'


def put(root: Path, folder: str = "run/systemd/inhibit", **files: str | bytes) -> None:
    (root / folder).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def test_the_search_finds_only_shutdown_inhibitors(tmp_path: Path) -> None:
    put(tmp_path, a=KUBELET, b=SLEEP, c=BOTH, d=KUBELET)
    assert of_shutdown(tmp_path) == (Inhibitor("kubelet", "delay"), Inhibitor("unattended-upgrades", "block"))


def test_inhibitors_are_found_if_the_hosts_run_folder_is_mounted_at_var_run(tmp_path: Path) -> None:
    """The manifests mount the host's /run as /var/run, so the agent must look there too."""
    (tmp_path / "run/careen").mkdir(parents=True)
    put(tmp_path, "var/run/systemd/inhibit", a=KUBELET)
    assert of_shutdown(tmp_path) == (Inhibitor("kubelet", "delay"),)


def test_a_host_without_the_inhibitors_folder_has_no_inhibitors(tmp_path: Path) -> None:
    assert of_shutdown(tmp_path) == ()
    put(tmp_path)
    assert of_shutdown(tmp_path) == ()


def test_the_search_for_inhibitors_opens_no_fifo_and_follows_no_symlink(tmp_path: Path) -> None:
    put(tmp_path, a=SLEEP)
    os.mkfifo(tmp_path / "run/systemd/inhibit/4.ref")
    (tmp_path / "elsewhere").write_text(KUBELET)
    (tmp_path / "run/systemd/inhibit/link").symlink_to(tmp_path / "elsewhere")
    assert of_shutdown(tmp_path) == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"WHAT",
        b"WHAT=shutdown\n",
        b"WHO=kubelet\n",
        b"WHAT=shutdownx\nWHO=kubelet\n",
        b"A=B\n" * 100_000,
    ],
)
def test_an_invalid_inhibitor_file_is_ignored(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, a=content)
    assert of_shutdown(tmp_path) == ()


def test_an_unreadable_inhibitors_folder_is_treated_as_empty(tmp_path: Path) -> None:
    (tmp_path / "run/systemd").mkdir(parents=True)
    (tmp_path / "run/systemd/inhibit").write_text("a file")
    assert of_shutdown(tmp_path) == ()
