"""Tests `careen demo` as a person runs it, with real agent processes on an embedded cluster."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from careen.cli import cli
from drydock.hosts.rogues import ROGUES
from drydock.rollout import rollout
from tests.patience import run, wait_until

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Any]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}", "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(
            [sys.executable, "-m", "careen", "demo", *arguments, "--keep", str(tmp_path)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def agents_of(folder: Path) -> list[int]:
    """Return the process ids of the agents that were started with a kubeconfig in this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"agent" in command and str(folder).encode() in command:
                found.append(int(entry.name))
    return found


def test_agents_of_the_demo_reboot_every_node_and_break_no_rule(demo: Any, tmp_path: Path) -> None:
    process = demo("--nodes", "3", "--seed", "7")
    output, _ = process.communicate()  # the demo's time limit follows the machine's load, and its message says more
    assert process.returncode == 0, output
    assert re.search(
        r"^3 of 3 nodes rebooted in \d+ s, \d+ pods moved, \d+ of them twice, "
        r"\d+ of \d+ evicted pods were placed as forecast, "
        r"every rule held$",
        output.splitlines()[-1],
    ), output
    assert agents_of(tmp_path) == []
    users = {json.loads(line)["user"] for line in (tmp_path / "requests.jsonl").read_text().splitlines()}
    assert users == {f"careen-agent-node-0{i}" for i in (1, 2, 3)}
    phases = re.findall(r"node-02  (\w+)", output)
    assert {"Waiting", "Rebooting", "Idle"} <= set(phases)


def test_demo_exits_with_1_if_an_agent_breaks_a_rule(demo: Any, tmp_path: Path) -> None:
    process = demo("--nodes", "2", "--break", "claim")
    output, _ = process.communicate()
    assert process.returncode == 1, output
    assert "BROKEN: no node reboots unless it holds the lock (claim)" in output
    assert (
        "node-02 was asked to reboot, but the lock had no valid claim of this node; the lock had claims of: " in output
    )
    assert "every rule held" not in output
    assert agents_of(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_demo_and_all_its_processes(demo: Any, tmp_path: Path, number: signal.Signals) -> None:
    process = demo("--nodes", "2")
    wait_until(lambda: len(agents_of(tmp_path)) == 2)
    process.send_signal(number)
    output, _ = process.communicate()
    assert process.returncode == 130, output
    assert "the agents and the API server have ended" in output
    assert agents_of(tmp_path) == []


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv on the PATH")
def test_agents_end_when_their_demo_is_killed(demo: Any, tmp_path: Path) -> None:
    process = demo("--nodes", "2")
    # setpriv asks the kernel to kill an agent when the demo dies. For one of the agents, setpriv may not have done so
    # yet when the test kills the demo. That agent must end, too.
    wait_until(lambda: len(agents_of(tmp_path)) == 2)
    process.kill()
    process.wait()
    wait_until(lambda: not agents_of(tmp_path))


def test_the_serve_flag_of_demo_keeps_the_cluster_running_and_writes_a_kubeconfig(demo: Any, tmp_path: Path) -> None:
    process = demo("--nodes", "2", "--serve")
    wait_until(lambda: (tmp_path / "kubeconfig").exists() or process.poll() is not None)
    status = run(
        [sys.executable, "-m", "careen", "status", "--kubeconfig", str(tmp_path / "kubeconfig")],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}"},
    )
    assert status.returncode == 0, status.stderr
    assert "node-01" in status.stdout
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 130
    assert f"export KUBECONFIG={tmp_path / 'kubeconfig'}" in output


def test_demo_with_the_serve_flag_ends_with_a_message_when_a_host_cannot_boot(demo: Any, tmp_path: Path) -> None:
    """The test puts a folder at the path of the sentinel file, so the demo cannot boot the host."""
    process = demo("--nodes", "1", "--serve")
    wait_until(lambda: (tmp_path / "kubeconfig").exists() or process.poll() is not None)
    host = tmp_path / "hosts" / "node-01"
    (host / "var/run/reboot-required").mkdir()
    (host / "reboot-asked").touch()
    output, _ = process.communicate()
    assert process.returncode == 4, output
    assert "Error: the embedded cluster's hosts died: IsADirectoryError" in output
    assert "Traceback" not in output
    assert agents_of(tmp_path) == []


def test_demo_refuses_an_unknown_rule_and_lists_the_rules() -> None:
    result = CliRunner().invoke(cli, ["demo", "--break", "gravity"])
    assert result.exit_code == 2
    assert "there is no rule 'gravity'" in result.output
    assert all(rule in re.sub(r"\s+", " ", result.output) for rule in ROGUES)


@pytest.mark.parametrize(
    "arguments", [["--nodes", "0"], ["--concurrency", "0"], ["--port", "70000"], ["--patience", "-1"]]
)
def test_demo_refuses_invalid_options(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, ["demo", *arguments]).exit_code == 2


def test_the_error_shows_which_port_is_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(
            cli, ["demo", "--nodes", "1", "--plain", "--keep", str(tmp_path), "--port", str(port)]
        )
    assert result.exit_code == 4
    assert f"Error: port {port} of 127.0.0.1 cannot be used: Address already in use" in result.output


def test_the_error_shows_which_folder_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(cli, ["demo", "--nodes", "1", "--keep", str(tmp_path / "file" / "x")])
    assert result.exit_code == 2
    assert f"Invalid value for --keep: {tmp_path}/file/x cannot be created: Not a directory" in " ".join(
        result.output.split()
    )


def test_demo_reports_why_its_agents_do_not_start_and_gives_no_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The demo ends with exit code 4 and does not wait for agents that have exited. Exit code 1 would wrongly mean that
    an agent broke a rule."""
    plan = functools.partial(rollout.RolloutPlan, agent_arguments=["--no-such-flag"])
    monkeypatch.setattr(rollout, "RolloutPlan", plan)
    result = CliRunner().invoke(cli, ["demo", "--nodes", "1", "--plain", "--keep", str(tmp_path)])
    assert result.exit_code == 4
    assert (
        "Error: the demo gives no verdict about this run: the agent of node-01 exited unexpectedly with the exit codes "
        "2, 2, 2 before it read its Node" in result.output
    )
    assert "No such option '--no-such-flag'" in result.output
    assert "Traceback" not in result.output
    assert agents_of(tmp_path) == []


def test_the_help_of_demo_lists_every_exit_code() -> None:
    page = " ".join(CliRunner().invoke(cli, ["demo", "--help"]).output.split())
    assert all(
        words in page
        for words in ("Exit code 0: every rule held", "1: a rule was broken", "4: no verdict", "130: stopped by Ctrl-C")
    )


def test_demo_reports_an_unwritable_folder_before_it_starts_anything() -> None:
    result = CliRunner().invoke(cli, ["demo", "--nodes", "1", "--keep", "/proc"])
    assert result.exit_code == 2
    assert "Invalid value for --keep: /proc cannot be written to:" in " ".join(result.output.split())
    assert "is starting" not in result.output


def test_demo_prints_its_verdict_even_if_the_recording_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    result = CliRunner().invoke(cli, ["demo", "--nodes", "1", "--plain", "--keep", str(tmp_path)])
    assert result.exit_code == 4
    assert "1 of 1 nodes rebooted" in result.output
    assert f"Error: the evidence could not be written to {tmp_path}: Is a directory" in result.output


@pytest.mark.parametrize("arguments", [[], ["--break", "release"], ["--serve"]])
def test_the_demo_without_drydock_says_where_to_get_drydock(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """The demo needs the package drydock, an embedded API server, which careen's image and wheel do not contain."""
    monkeypatch.setattr("careen.cli.demo.find_spec", lambda _: None)
    done = CliRunner().invoke(cli, ["demo", *arguments])
    assert done.exit_code == 2, done.output
    assert "run `make demo` in a checkout" in done.output
