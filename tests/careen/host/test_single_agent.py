"""Tests two agent processes on one node. Only one of them acts: the process that has locked a file on the host. The
other process waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from careen.host.single_agent import CannotLock, Held, HeldByOther, take


def test_only_one_agent_of_a_node_gets_the_lock_file(tmp_path: Path) -> None:
    first = take(tmp_path, "/run/careen", "n1")
    assert isinstance(first, Held)
    assert take(tmp_path, "/run/careen", "n1") == HeldByOther(tmp_path / "run/careen/careen-n1.lock")
    os.close(first.descriptor)
    second = take(tmp_path, "/run/careen", "n1")
    assert isinstance(second, Held)
    os.close(second.descriptor)


def test_agents_of_different_nodes_use_different_lock_files(tmp_path: Path) -> None:
    held = [take(tmp_path, "/run/careen", name) for name in ("n1", "n2")]
    assert all(isinstance(each, Held) for each in held)
    for each in held:
        assert isinstance(each, Held)
        os.close(each.descriptor)


def test_the_lock_on_the_file_ends_with_the_agents_process(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from careen.host.single_agent import take; "
        f"take(Path({str(tmp_path)!r}), '/run', 'n1'); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert isinstance(take(tmp_path, "/run", "n1"), HeldByOther)
        other.kill()
        other.wait()
    held = take(tmp_path, "/run", "n1")
    assert isinstance(held, Held)
    os.close(held.descriptor)


def test_a_child_process_of_the_agent_does_not_inherit_the_lock_on_the_file(tmp_path: Path) -> None:
    """A reboot command may run longer than the agent that started it. The next agent of the node must still get the
    lock on the file, and work."""
    held = take(tmp_path, "/run", "n1")
    assert isinstance(held, Held)
    with subprocess.Popen(["sleep", "30"]) as child:
        os.close(held.descriptor)
        again = take(tmp_path, "/run", "n1")
        child.kill()
    assert isinstance(again, Held)
    os.close(again.descriptor)


def test_a_lock_file_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    answer = take(tmp_path, "/run", "n1")
    assert isinstance(answer, CannotLock)
    assert str(tmp_path / "run") in answer.why
