"""Tests how paths of the host are found below the folder where the host is mounted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from careen.core.facts.observation import NeedAnswer
from careen.host.commands import HostExec, NotStarted, run_on_host
from careen.host.need import HostNeed, Sources
from careen.host.paths import under_root, why_not_the_host
from tests.patience import LONG_SECONDS, run


def test_a_path_is_unchanged_if_the_host_root_is_the_agents_root() -> None:
    assert under_root(Path("/"), "/var/run/reboot-required") == Path("/var/run/reboot-required")


def test_an_absolute_symlink_is_resolved_inside_the_host_root(tmp_path: Path) -> None:
    """On Debian, /var/run is a link to /run. Resolved from the root of the container, the link would lead to the
    container's /run.
    """
    (tmp_path / "var").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "var/run").symlink_to("/run")
    assert under_root(tmp_path, "/var/run/reboot-required") == tmp_path / "run/reboot-required"


def test_relative_symlinks_and_parent_folders_stay_inside_the_host_root(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "var/run").symlink_to("../run")
    (tmp_path / "escape").symlink_to("../../../../etc")
    assert under_root(tmp_path, "/var/run/x") == tmp_path / "run/x"
    assert under_root(tmp_path, "/escape/passwd") == tmp_path / "etc/passwd"
    assert under_root(tmp_path, "/../../etc/passwd") == tmp_path / "etc/passwd"


def test_a_symlink_in_the_last_component_of_a_path_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "sentinel").symlink_to("/nowhere")
    assert under_root(tmp_path, "/sentinel") == tmp_path / "sentinel"


def test_a_cycle_of_symlinks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/b")
    (tmp_path / "b").symlink_to("/a")
    with pytest.raises(OSError, match="symbolic links"):
        under_root(tmp_path, "/a/x")


REMEDY = "set `hostPID: true` in the pod template"


def a_proc(folder: Path, *, is_shared: bool) -> Path:
    """A /proc whose process 1 is in the mount namespace of this process if `is_shared`."""
    for name in ("self", "1"):
        (folder / name / "ns").mkdir(parents=True)
    (folder / "self/ns/mnt").touch()
    (folder / "self/ns/pid").touch()
    if is_shared:
        os.link(folder / "self/ns/mnt", folder / "1/ns/mnt")
    else:
        (folder / "1/ns/mnt").touch()
    (folder / "1/root/run").mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ("first", "is_host"), [("systemd", True), ("init", True), ("pause", False), ("pod", False), ("catatonit", False)]
)
def test_the_first_process_of_a_pod_with_a_shared_process_namespace_is_not_the_host(
    tmp_path: Path, first: str, is_host: bool
) -> None:
    proc = a_proc(tmp_path, is_shared=False)
    (proc / "1/comm").write_text(f"{first}\n")
    why = why_not_the_host(proc)
    assert (why == "") is is_host
    if not is_host:
        assert "the agent's own pod (shareProcessNamespace)" in why
        assert REMEDY in why


@pytest.mark.parametrize(("is_shared", "answer"), [(True, NeedAnswer.UNKNOWN), (False, NeedAnswer.NO)])
async def test_without_host_pid_the_need_is_unknown_with_a_remedy(
    tmp_path: Path, is_shared: bool, answer: NeedAnswer
) -> None:
    proc = a_proc(tmp_path, is_shared=is_shared)
    sources = Sources(files=("/run/reboot-required",), seconds=LONG_SECONDS)
    need = await HostNeed(sources, root=proc / "1/root", how=HostExec.DIRECT, proc=proc).look()
    assert (need.answer, REMEDY in need.detail) == (answer, is_shared)
    mounted = HostNeed(sources, root=proc / "1/root/../root", how=HostExec.DIRECT, proc=tmp_path / "other")
    assert (await mounted.look()).answer is NeedAnswer.NO, "a mounted folder is the host's in any case"


async def test_without_host_pid_no_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("careen.host.paths.PROC", a_proc(tmp_path, is_shared=True))
    outcome = await run_on_host(["true"], how=HostExec.NSENTER, deadline_seconds=LONG_SECONDS)
    assert isinstance(outcome, NotStarted)
    assert REMEDY in outcome.why


CONTAINER = ("unshare", "-m", "-p", "--fork", "--kill-child", "--mount-proc")
ASK = "from pathlib import Path; from careen.host.paths import *; print(why_not_the_host(Path('/proc')))"


@pytest.mark.skipif(run([*CONTAINER, "true"]).returncode != 0, reason="needs the right to make namespaces")
def test_the_kernel_tells_the_containers_first_process_from_the_hosts() -> None:
    as_first = run([*CONTAINER, sys.executable, "-c", ASK])
    below_a_shell = run([*CONTAINER, "sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", ASK])
    on_a_host = run([*CONTAINER, "sh", "-c", 'unshare -m "$@"; exit $?', "sh", sys.executable, "-c", ASK])
    assert REMEDY in as_first.stdout
    assert REMEDY in below_a_shell.stdout
    assert (on_a_host.stdout, on_a_host.returncode) == ("\n", 0)


def test_an_unreadable_first_process_is_no_reason(tmp_path: Path) -> None:
    assert why_not_the_host(tmp_path) == ""
