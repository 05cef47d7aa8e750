from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from drydock.hosts import agent_processes


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv on the PATH")
@pytest.mark.parametrize("parent_is_gone", [False, True])
def test_an_agent_process_does_not_start_after_the_demo_process_has_died(
    parent_is_gone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = os.getppid() if parent_is_gone else os.getpid()
    monkeypatch.setattr(agent_processes.os, "getpid", lambda: parent)
    prefix = agent_processes.dies_with_us()
    monkeypatch.undo()
    result = subprocess.run([*prefix, "touch", str(tmp_path / "an agent")], check=False)
    assert (tmp_path / "an agent").exists() is not parent_is_gone
    assert result.returncode == (1 if parent_is_gone else 0)
