"""Tests how the sentinel file decides whether the host needs a reboot: yes, no or unknown. A sentinel file that could
not be read is never treated as no."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from careen.core.facts.observation import Need, NeedAnswer
from careen.host import sentinel
from careen.host.commands import HostExec
from tests.patience import LONG_SECONDS

YES, NO, UNKNOWN = NeedAnswer.YES, NeedAnswer.NO, NeedAnswer.UNKNOWN


def host(root: Path) -> Path:
    (root / "run").mkdir()
    return root


def test_the_host_needs_a_reboot_if_the_sentinel_file_exists(tmp_path: Path) -> None:
    (host(tmp_path) / "run/reboot-required").touch()
    need = sentinel.read_file(tmp_path, "/run/reboot-required")
    assert (need.answer, need.detail) == (YES, "the sentinel file /run/reboot-required exists")


def test_a_dangling_symlink_is_treated_as_a_sentinel_file(tmp_path: Path) -> None:
    (host(tmp_path) / "run/reboot-required").symlink_to("/nowhere")
    assert sentinel.read_file(tmp_path, "/run/reboot-required").answer is YES


def test_a_folder_at_the_path_of_the_sentinel_leaves_the_need_for_a_reboot_unknown(tmp_path: Path) -> None:
    """If a pod mounts a missing file, a container runtime creates a folder at its path. A reboot does not remove this
    folder, so the folder must not mean that the host needs a reboot."""
    (host(tmp_path) / "run/reboot-required").mkdir()
    need = sentinel.read_file(tmp_path, "/run/reboot-required")
    assert need.answer is UNKNOWN
    assert "the sentinel file /run/reboot-required is a folder" in need.detail


def test_no_reboot_is_needed_if_the_folder_exists_without_the_sentinel_file(tmp_path: Path) -> None:
    assert sentinel.read_file(host(tmp_path), "/run/reboot-required").answer is NO


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/mnt/reboot-required", "folder is missing"),
        ("/file/reboot-required", "Not a directory"),
        ("/loop/x", "symbolic links"),
    ],
    ids=["the mount is missing", "the folder is a file", "the path is a cycle of symlinks"],
)
def test_an_inaccessible_sentinel_file_leaves_the_need_for_a_reboot_unknown(
    tmp_path: Path, path: str, word: str
) -> None:
    host(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("/loop")
    need = sentinel.read_file(tmp_path, path)
    assert need.answer is UNKNOWN
    assert path in need.detail
    assert word in need.detail


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every folder")
def test_a_sentinel_file_in_a_forbidden_folder_leaves_the_need_for_a_reboot_unknown(tmp_path: Path) -> None:
    (host(tmp_path) / "run").chmod(0)
    try:
        assert sentinel.read_file(tmp_path, "/run/reboot-required").answer is UNKNOWN
    finally:
        (tmp_path / "run").chmod(0o700)


def test_a_file_system_error_leaves_the_need_for_a_reboot_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root can read every folder, so the test with a forbidden folder is skipped for root. This test causes the same
    error in another way, so that it also runs as root."""

    def refused(self: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "lstat", refused)
    need = sentinel.read_file(host(tmp_path), "/run/reboot-required")
    assert need.answer is UNKNOWN
    assert "Permission denied" in need.detail


def file_look(root: Path, path: str = "/run/reboot-required", *, deadline_seconds: float) -> sentinel.FileLook:
    return sentinel.FileLook(
        lambda: sentinel.read_file(root, path), f"the sentinel file {path}", deadline_seconds=deadline_seconds
    )


class Hanging:
    """Replaces the read of the sentinel file. Each read waits until the test sets `is_back`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_back = threading.Event()
        self.looks = 0
        self._read_file = sentinel.read_file
        monkeypatch.setattr(sentinel, "read_file", self)

    def __call__(self, root: Path, path: str) -> Need:
        self.looks += 1
        self.is_back.wait(LONG_SECONDS)
        return self._read_file(root, path)


async def test_a_hanging_file_system_is_not_checked_again_until_it_responds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the agent checked the file again every five seconds, each check would block one more thread, until the process
    could start no further thread."""
    files = Hanging(monkeypatch)
    look = file_look(host(tmp_path), deadline_seconds=0.05)
    before = threading.active_count()
    answers = [await look.read() for _ in range(20)]
    assert {answer.answer for answer in answers} == {UNKNOWN}
    assert "takes longer than" in answers[0].detail
    assert files.looks == 1
    assert threading.active_count() == before + 1
    (tmp_path / "run/reboot-required").touch()
    files.is_back.set()
    while (answer := await look.read()).answer is UNKNOWN:
        await asyncio.sleep(0.01)
    assert answer.answer is YES


async def test_simultaneous_checks_of_the_sentinel_share_one_file_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Hanging(monkeypatch)
    look = file_look(host(tmp_path), deadline_seconds=30)
    both = asyncio.gather(look.read(), look.read())
    await asyncio.sleep(0.05)
    files.is_back.set()
    assert [answer.answer for answer in await both] == [NO, NO]
    assert files.looks == 1


async def test_a_hanging_check_of_the_sentinel_blocks_no_other_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check has its own thread. Queries to Prometheus use the threads of the event loop's pool, and a small host
    has few threads in this pool. If the check used the same pool, each hanging check would take away one of these
    threads. In this test, the pool has only one thread."""
    files = Hanging(monkeypatch)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))
    look = file_look(host(tmp_path), deadline_seconds=0.05)
    await look.read()
    assert await asyncio.to_thread(lambda: "answered") == "answered"
    files.is_back.set()


async def test_the_need_for_a_reboot_is_unknown_if_no_thread_can_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    look = file_look(host(tmp_path), deadline_seconds=30)
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refuse)
        need = await look.read()
    assert (need.answer, "can't start new thread" in need.detail) == (UNKNOWN, True)
    assert (await look.read()).answer is NO


async def test_an_exception_in_the_sentinel_check_leaves_the_need_for_a_reboot_unknown(tmp_path: Path) -> None:
    need = await file_look(tmp_path, "/run/\0", deadline_seconds=30).read()
    assert (need.answer, "null" in need.detail) == (UNKNOWN, True)


@pytest.mark.parametrize(
    ("script", "answer", "words"),
    [
        ("exit 0", YES, "exited with 0"),
        ("exit 1", NO, "exited with 1"),
        ("exit 2", UNKNOWN, "exited with 2, but only 0 (yes) and 1 (no) are valid"),
        ("echo broken >&2; exit 100", UNKNOWN, "broken"),
        ("kill -9 $$", UNKNOWN, "exited with -9"),
        ("! no-such-program-here", UNKNOWN, "a program is missing"),
        ("no-such-program-here || exit 1", UNKNOWN, "a program is missing"),
    ],
)
async def test_the_exit_code_of_the_sentinel_command_decides_whether_a_reboot_is_needed(
    script: str, answer: NeedAnswer, words: str
) -> None:
    need = await sentinel.run_command(["sh", "-c", script], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
    assert need.answer is answer
    assert words in need.detail


async def test_a_missing_sentinel_command_leaves_the_need_for_a_reboot_unknown() -> None:
    need = await sentinel.run_command(["/no/such/program"], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
    assert need.answer is UNKNOWN
    assert "/no/such/program" in need.detail


async def test_a_sentinel_command_that_does_not_end_leaves_the_need_for_a_reboot_unknown() -> None:
    need = await sentinel.run_command(["sleep", "30"], how=HostExec.DIRECT, deadline_seconds=0.2)
    assert need.answer is UNKNOWN
    assert "did not end" in need.detail
