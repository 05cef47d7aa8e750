"""Tests how the console scripts determine the program name and the arguments, and how a signal ends a script that is
still starting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from careen.__main__ import with_command
from careen.cli import COMMANDS
from tests.patience import run


@pytest.mark.parametrize(
    ("called_as", "given", "meant"),
    [
        ("/usr/bin/kured", ["--period=1h"], ["agent", "--period=1h"]),
        ("/usr/bin/kured", [], ["agent"]),
        ("/usr/bin/kured", ["--help"], ["agent", "--help"]),
        ("kured", ["agent", "--period=1h"], ["agent", "--period=1h"]),
        ("/opt/careen/bin/careen", ["--period=1h"], ["agent", "--period=1h"]),
        ("careen", ["--force-reboot", "--period", "1h"], ["agent", "--force-reboot", "--period", "1h"]),
        ("careen", ["--perod=1h"], ["agent", "--perod=1h"]),
        ("careen", ["agent", "--period=1h"], ["agent", "--period=1h"]),
        ("careen", ["--help"], ["--help"]),
        ("careen", ["-h"], ["-h"]),
        ("careen", ["--version"], ["--version"]),
        ("careen", ["status", "--output=json"], ["status", "--output=json"]),
        ("kubectl-careen", ["why", "n1"], ["why", "n1"]),
        ("careen", [], []),
    ],
)
def test_flags_without_a_command_are_passed_to_the_command_agent(
    called_as: str, given: list[str], meant: list[str]
) -> None:
    assert with_command(called_as, given) == meant


def script(folder: Path, name: str) -> Path:
    """Write the console script that pip would write, and return the path of the script."""
    file = folder / name
    file.write_text(f"#!{sys.executable}\nimport sys\nfrom careen.__main__ import main\nsys.exit(main())\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("name", ["careen", "kured"])
def test_the_console_script_starts_the_agent_if_it_gets_only_flags(tmp_path: Path, name: str) -> None:
    done = run([str(script(tmp_path, name)), "--period=1h"], cwd=tmp_path)
    assert done.returncode == 2
    assert "careen agent: the agent does not know which Node it serves" in done.stderr


def test_an_unknown_flag_is_reported_with_a_suggestion(tmp_path: Path) -> None:
    done = run([str(script(tmp_path, "kured")), "--perid=1h"], cwd=tmp_path)
    assert done.returncode == 2
    assert "--perid" in done.stderr
    assert "--period" in done.stderr


def test_the_help_lists_commands_for_the_program_name_careen_and_flags_for_the_name_kured(tmp_path: Path) -> None:
    done = run([str(script(tmp_path, "careen")), "--help"], cwd=tmp_path)
    assert done.returncode == 0
    assert [entry.name for entry in COMMANDS if f"\n  {entry.name} " not in done.stdout] == []
    done = run([str(script(tmp_path, "kured")), "--help"], cwd=tmp_path)
    assert (done.returncode, "--reboot-sentinel" in done.stdout) == (0, True)


# ---- stopped while it starts ----

_STOPPED_BEFORE = """
import builtins, os, signal, sys
sys.argv = {argv!r}
load = builtins.__import__
def loads(name, *rest, **more):
    if name == {module!r} or name.startswith({module!r} + "."):
        os.kill(os.getpid(), signal.SIGTERM)
    return load(name, *rest, **more)
builtins.__import__ = loads
from careen.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["careen.cli", "click", "asyncio", "careen.agent.startup.wiring", "kubernetes"])
def test_an_agent_that_is_stopped_during_its_imports_exits_with_0(tmp_path: Path, module: str) -> None:
    program = _STOPPED_BEFORE.format(argv=["careen", "agent", "--node-id=n1"], module=module)
    done = run([sys.executable, "-c", program], cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_command_does_not_exit_with_0_after_sigterm(tmp_path: Path) -> None:
    program = _STOPPED_BEFORE.format(argv=["careen", "status"], module="careen.cli")
    assert run([sys.executable, "-c", program], cwd=tmp_path).returncode == -signal.SIGTERM


def test_a_sigterm_that_is_pending_at_the_start_ends_the_agent_with_0(tmp_path: Path) -> None:
    """The scripts of the image start with SIGTERM blocked. In this test, SIGTERM arrives before Python starts, so it is
    still pending."""
    program = "import os, signal, sys\nsys.argv = ['kured', '--node-id=n1']\nfrom careen.__main__ import main\nmain()"

    def blocked() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        os.kill(os.getpid(), signal.SIGTERM)

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, preexec_fn=blocked, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
