"""Tests which modules a command imports. Each import makes the command start more slowly; `make bench-commands`
measures how much."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from careen.cli.support.lock_place import KUREDS
from careen.settings.tree import DEFAULTS
from tests.careen.cli.conftest import Desk
from tests.patience import run

HEAVY = {
    "aiohttp",
    "apprise",
    "dateutil",
    "kopf",
    "kubernetes.client.api",
    "kubernetes.client.models",
    "numpy",
    "oauthlib",
    "prometheus_api_client",
    "prometheus_client",
    "pydantic",
    "requests",
    "rich",
    "scheduler_core.cycle",
    "scheduler_core.simulation.drain",
    "websocket",
}

PROGRAM = f"""
import json, sys
from careen.__main__ import main
try:
    main()
except SystemExit as end:
    code = end.code
modules = set(sys.modules)
print(json.dumps({{"code": code, "heavy": sorted(modules & set({sorted(HEAVY)!r})), "settings":
    "careen.settings.tree" in modules, "oauth": "oauthlib" in modules}}), file=sys.stderr)
"""

COMMANDS = (
    ("status",),
    ("why", "n1"),
    ("lock", "show"),
    ("lock", "pause"),
    ("hold", "n1", "--reason", "x"),
    ("unhold", "n1"),
    ("retry", "n2"),
)


def loaded(desk: Desk, folder: Path, *words: str) -> dict[str, object]:
    """Run a command in a new process. The command must succeed. Return what the process reports, for example `{"code":
    0, "heavy": ["numpy"], …}`, where `heavy` names the slow modules that the process has loaded."""
    command = [sys.executable, "-c", PROGRAM, *words, "--kubeconfig", str(desk.kubeconfig)]
    done = run(command, cwd=folder)
    found: dict[str, object] = json.loads(done.stderr.splitlines()[-1])
    assert found["code"] == 0, done.stderr
    return found


@pytest.fixture
def town(desk: Desk) -> Desk:
    desk.node("n1")
    desk.node("n2", "Failed")
    desk.lock()
    return desk


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_that_read_or_annotate_nodes_import_no_heavy_library(
    town: Desk, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert loaded(town, tmp_path, *words)["heavy"] == []


@pytest.mark.parametrize("words", [("status",), ("lock", "show"), ("hold", "n1", "--reason", "x")], ids=" ".join)
def test_only_commands_that_use_the_agents_settings_import_the_settings_module(
    town: Desk, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert loaded(town, tmp_path, *words)["settings"] is False


def test_commands_and_agents_look_for_kureds_daemonset_under_the_same_name() -> None:
    assert (DEFAULTS["ds_namespace"], DEFAULTS["ds_name"]) == KUREDS


def test_a_kubeconfig_with_an_auth_provider_loads_the_full_client(town: Desk, tmp_path: Path) -> None:
    """careen's own small HTTP client cannot renew the tokens of an auth provider, so careen loads the whole Kubernetes
    client."""
    text = town.kubeconfig.read_text()
    town.kubeconfig.write_text(text + "\n# auth-provider: oidc\n")
    assert loaded(town, tmp_path, "status")["oauth"] is True
