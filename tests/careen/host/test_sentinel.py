"""Does the host want a reboot: yes, no, or not to be told. Never a "no" for what could not be seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from careen.core.observation import NeedAnswer
from careen.host import sentinel
from careen.host.commands import HostExec

YES, NO, UNKNOWN = NeedAnswer.YES, NeedAnswer.NO, NeedAnswer.UNKNOWN


def host(root: Path) -> Path:
    (root / "run").mkdir()
    return root


def test_a_sentinel_that_exists_asks_for_a_reboot(tmp_path: Path) -> None:
    (host(tmp_path) / "run/reboot-required").touch()
    need = sentinel.read_file(tmp_path, "/run/reboot-required")
    assert (need.answer, need.detail) == (YES, "the sentinel file /run/reboot-required exists")


def test_a_sentinel_that_is_a_dangling_link_exists(tmp_path: Path) -> None:
    (host(tmp_path) / "run/reboot-required").symlink_to("/nowhere")
    assert sentinel.read_file(tmp_path, "/run/reboot-required").answer is YES


def test_a_folder_in_the_sentinels_place_asks_for_nothing_and_is_told(tmp_path: Path) -> None:
    """A container runtime makes one where it was to mount a file that was not there; it outlives every reboot."""
    (host(tmp_path) / "run/reboot-required").mkdir()
    need = sentinel.read_file(tmp_path, "/run/reboot-required")
    assert need.answer is UNKNOWN
    assert "/run/reboot-required is a folder" in need.detail


def test_an_absent_sentinel_in_a_folder_that_is_there_asks_for_none(tmp_path: Path) -> None:
    assert sentinel.read_file(host(tmp_path), "/run/reboot-required").answer is NO


@pytest.mark.parametrize(
    ("path", "word"),
    [("/mnt/reboot-required", "folder is not there"), ("/file/reboot-required", "Not a directory"), ("/loop/x", "symbolic links")],
    ids=["the mount is missing", "the folder is a file", "a circle of links"],
)
def test_what_could_not_be_seen_is_unknown(tmp_path: Path, path: str, word: str) -> None:
    host(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("/loop")
    need = sentinel.read_file(tmp_path, path)
    assert need.answer is UNKNOWN
    assert path in need.detail
    assert word in need.detail


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_folder_that_may_not_be_searched_is_unknown(tmp_path: Path) -> None:
    (host(tmp_path) / "run").chmod(0)
    try:
        assert sentinel.read_file(tmp_path, "/run/reboot-required").answer is UNKNOWN
    finally:
        (tmp_path / "run").chmod(0o700)


def test_an_error_of_the_file_system_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as above for those who run the tests as root."""

    def refused(self: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "lstat", refused)
    need = sentinel.read_file(host(tmp_path), "/run/reboot-required")
    assert need.answer is UNKNOWN
    assert "Permission denied" in need.detail


async def test_a_file_system_that_hangs_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    released = threading.Event()
    monkeypatch.setattr(sentinel, "read_file", lambda *_: released.wait(20))
    need = await sentinel.read_file_in_thread(tmp_path, "/x", deadline_seconds=0.1)
    released.set()
    assert need.answer is UNKNOWN


@pytest.mark.parametrize(
    ("script", "answer", "words"),
    [
        ("exit 0", YES, "exited with 0"),
        ("exit 1", NO, "exited with 1"),
        ("exit 2", UNKNOWN, "exited with 2, which means neither yes (0) nor no (1)"),
        ("echo broken >&2; exit 100", UNKNOWN, "broken"),
        ("kill -9 $$", UNKNOWN, "exited with -9"),
        ("! no-such-program-here", UNKNOWN, "a program is missing"),
        ("no-such-program-here || exit 1", UNKNOWN, "a program is missing"),
    ],
)
async def test_the_exit_code_of_the_command_is_the_answer(script: str, answer: NeedAnswer, words: str) -> None:
    need = await sentinel.run_command(["sh", "-c", script], how=HostExec.DIRECT, deadline_seconds=20)
    assert need.answer is answer
    assert words in need.detail


async def test_a_command_that_is_missing_is_unknown() -> None:
    need = await sentinel.run_command(["/no/such/program"], how=HostExec.DIRECT, deadline_seconds=20)
    assert need.answer is UNKNOWN
    assert "/no/such/program" in need.detail


async def test_a_command_that_does_not_end_is_unknown() -> None:
    need = await sentinel.run_command(["sleep", "30"], how=HostExec.DIRECT, deadline_seconds=0.2)
    assert need.answer is UNKNOWN
    assert "did not end" in need.detail
