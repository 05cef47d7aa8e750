"""Tests that child processes of the agent do not inherit environment variables with the agent's settings. Some of these
variables contain message URLs with secrets."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

from careen.agent.forecast import forecaster
from careen.agent.forecast.forecaster import Limits, forecast_together
from careen.host import environment
from careen.host.commands import Exited, HostExec, run_on_host
from careen.settings.tree import SETTINGS, variable
from tests.architecture.source_tree import modules
from tests.patience import LONG_SECONDS

SECRET = "generic://example.com/SECRETWORD"


@pytest.fixture(autouse=True)
def settings_of_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SETTINGS:
        for prefix in ("CAREEN", "KURED"):
            monkeypatch.setenv(variable(name, prefix), SECRET)
    monkeypatch.setenv("KURED_NODE_ID", "n1")
    monkeypatch.setenv("CAREEN_NODE_ID", "n1")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")


def test_child_processes_get_no_setting_except_the_node_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = environment.of_children()
    assert {name: value for name, value in seen.items() if name.startswith(("CAREEN_", "KURED_"))} == {
        "CAREEN_NODE_ID": "n1",
        "KURED_NODE_ID": "n1",
    }
    assert SECRET not in seen.values()
    assert seen["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"
    assert seen["PATH"]


async def test_a_command_on_the_host_does_not_get_the_message_urls() -> None:
    outcome = await run_on_host(["env"], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS)
    assert isinstance(outcome, Exited)
    assert "KUBERNETES_SERVICE_HOST=10.96.0.1" in outcome.output or "PATH=" in outcome.output
    everything = await run_on_host(
        ["sh", "-c", "env | grep -c SECRETWORD"], how=HostExec.DIRECT, deadline_seconds=LONG_SECONDS
    )
    assert everything == Exited(code=1, output="0", errors="")


async def test_the_child_process_of_a_forecast_does_not_get_the_message_urls(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    stand_in = tmp_path / "python"
    program = f"import json, os, pathlib; pathlib.Path({str(seen)!r}).write_text(json.dumps(dict(os.environ)))"
    stand_in.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{program.replace(chr(39), chr(34))}'\n")
    stand_in.chmod(0o755)
    monkeypatch.setattr(forecaster.sys, "executable", str(stand_in))  # type: ignore[attr-defined]
    await forecast_together(["n1"], Limits(seconds=LONG_SECONDS, memory_bytes=2**30, scheduler_config=""))
    found = json.loads(seen.read_text())
    assert found["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"
    assert SECRET not in found.values()


def test_every_child_process_gets_the_reduced_environment() -> None:
    calls = [
        (module.where, call)
        for module in modules("careen")
        for call in ast.walk(module.tree)
        if isinstance(call, ast.Call) and _name(call.func) in _STARTING
    ]
    assert len(calls) >= 3
    assert [
        where
        for where, call in calls
        if not any(
            each.arg == "env" and ast.unparse(each.value) == "environment.of_children()" for each in call.keywords
        )
    ] == []


_STARTING = {"create_subprocess_exec", "create_subprocess_shell", "Popen", "check_output", "check_call", "posix_spawn"}


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
