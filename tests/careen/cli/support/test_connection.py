"""Tests the messages of each command when the cluster cannot be reached."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from careen.cli import COMMANDS, cli
from careen.cluster.wire import api
from drydock.server.testing import write_kubeconfig
from tests.careen.cli.conftest import Desk
from tests.patience import run

PLUGIN = Path(sys.executable).with_name("kubectl-careen")

PEOPLES = ["status", "why n1", "lock show", "hold n1 --reason x", "unhold n1", "retry n1"]


@pytest.mark.parametrize("command", PEOPLES)
def test_the_error_says_how_to_give_a_kubeconfig_if_there_is_none(command: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, command.split(), env={"HOME": str(tmp_path), "KUBECONFIG": ""})
    assert result.exit_code == 2
    assert "give --kubeconfig FILE or set KUBECONFIG" in " ".join(result.output.split())


@pytest.mark.parametrize("command", PEOPLES)
def test_the_error_shows_the_path_of_a_missing_kubeconfig(command: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, [*command.split(), "--kubeconfig", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert str(tmp_path / "nowhere") in result.output


def test_the_error_shows_the_name_of_a_missing_kubeconfig_context(desk: Desk) -> None:
    result = desk.run("status", "--context", "other")
    assert result.exit_code == 2
    assert "other" in result.output


def test_an_unreachable_api_server_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "READ_PATIENCE_SECONDS", 0.5)
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:9")
    result = CliRunner().invoke(cli, ["unhold", "n1", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 1
    assert (
        "Error: the API server cannot be reached: GET /apis/apps/v1/namespaces/careen/daemonsets/careen"
        in result.output
    )
    assert "check the server's address in the kubeconfig" in result.output


def test_the_version_option_prints_the_version_of_the_package() -> None:
    assert CliRunner().invoke(cli, ["--version"]).output == f"careen, version {version('careen')}\n"


@pytest.mark.parametrize("name", ["", ".", ".."])
@pytest.mark.parametrize("command", ["why", "unhold", "retry"])
def test_a_node_name_that_is_empty_or_a_relative_path_is_refused(desk: Desk, command: str, name: str) -> None:
    desk.node("n1")
    desk.lock()
    result = desk.run(command, name)
    assert result.exit_code == 2
    assert f"there is no Node '{name}'" in result.output


@pytest.mark.parametrize("command", ["status", "why n1", "lock show"])
def test_a_command_that_cannot_write_its_output_prints_an_error_without_a_traceback(desk: Desk, command: str) -> None:
    desk.node("n1")
    desk.lock()
    with Path("/dev/full").open("wb") as full:
        done = run(
            [Path(sys.executable).with_name("careen"), *command.split(), "--kubeconfig", desk.kubeconfig], stdout=full
        )
    assert done.returncode != 0
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_error_shows_which_rbac_right_is_missing(desk: Desk) -> None:
    desk.node("n1")
    desk.server.api.authorizer = lambda user, verb, group, resource, namespace, name: verb == "get"
    result = desk.run("hold", "n1", "--reason", "x")
    assert result.exit_code == 1
    assert "the Node was not changed" in result.output
    assert "403" in result.output
    listing = desk.run("status")
    assert listing.exit_code == 1
    assert "Error: a right is missing: " in listing.output
    assert "ask the cluster's administrators" in listing.output


def test_commands_use_the_kubeconfig_in_the_home_folder_like_kubectl(desk: Desk, tmp_path: Path) -> None:
    desk.node("n1")
    (tmp_path / ".kube").mkdir()
    desk.server.write_kubeconfig(tmp_path / ".kube" / "config")
    result = CliRunner().invoke(cli, ["status"], env={"HOME": str(tmp_path), "KUBECONFIG": ""})
    assert result.exit_code == 0, result.output
    assert "1 node: 1 Idle." in result.output


def test_the_user_agent_of_every_request_is_careen_cli(desk: Desk) -> None:
    desk.ok("status")
    assert {request.agent.split("/")[0] for request in desk.server.api.requests} == {"careen-cli"}


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_every_command_has_a_help_text(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"Usage: cli {name}")


@pytest.mark.kubectl
@pytest.mark.skipif(
    shutil.which("kubectl") is None or not PLUGIN.exists(), reason="needs kubectl on the PATH and careen installed"
)
def test_kubectl_runs_careen_as_a_plugin(desk: Desk) -> None:
    desk.node("n1")
    environment = {
        "PATH": f"{PLUGIN.parent}:{Path(shutil.which('kubectl') or '').parent}",
        "KUBECONFIG": str(desk.kubeconfig),
        "HOME": str(desk.kubeconfig.parent),
    }

    def kubectl(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run(["kubectl", "careen", *arguments], env=environment)

    assert "1 node: 1 Idle." in kubectl("status").stdout
    assert kubectl("--help").stdout.startswith("Usage: kubectl careen [OPTIONS] COMMAND")
    assert kubectl("why", "n2").returncode == 2


@pytest.mark.parametrize("option", ["--ds-namespace=A_B", "--ds-name=a/b", "--lock-annotation=a..b/c"])
def test_an_invalid_object_name_is_refused_before_any_request(option: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["status", option, "--kubeconfig", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "expected" in result.output


@pytest.mark.parametrize(
    "words",
    [
        ("--context", "other", "status"),
        ("--context=other", "lock", "show"),
        ("--context", "x", "status", "--context", "other"),
    ],
    ids=" ".join,
)
def test_the_context_may_stand_before_the_command(desk: Desk, words: tuple[str, ...]) -> None:
    result = desk.run(*words)
    assert (result.exit_code, "'other'" in result.output) == (2, True), result.output


def test_a_context_before_a_command_without_a_cluster_is_refused(desk: Desk) -> None:
    result = desk.run("--context", "other", "demo", "--help")
    assert (result.exit_code, "`careen demo` asks no cluster" in result.output) == (2, True), result.output
