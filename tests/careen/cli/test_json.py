"""Tests the JSON of each command with `--output json`, in a cluster with many problems and in one without problems.

A missing value is null, never an empty text or a missing key. The same object has the same keys in every output. YAML
has the same content as JSON.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from careen.cli import COMMANDS, cli
from careen.core.facts import keys
from careen.core.lock.content import Entry, LockContent, Overdue
from careen.core.lock.line import Line
from drydock.server.testing import server_in_thread
from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_plan import a_node, a_replica

START = ("--start", "2199-03-04T22:00:00Z")

ASKED = (
    ("status",),
    ("status", "--busy"),
    ("history",),
    ("why", "n1"),
    ("why", "n2"),
    ("forecast", "n1"),
    ("forecast", "n1", "n2"),
    ("plan", *START),
    ("plan", *START, "--compare", "--set", "end-time=22:01", "--set", "start-time=22:00", "--days", "1"),
    ("explain", "shop/web-1"),
    ("explain", "shop/huge"),
    ("why-pending", "shop/web-1"),
    ("why-pending", "shop/huge"),
    ("lock", "show"),
    ("cleanup",),
    ("config",),
    ("config", "--here"),
    ("shadow", "--once", "--for", "1"),
)

# Objects whose keys are names of settings, plugins and outcomes instead of field names.
OPEN = (".counts", ".settings", ".scores", ".verdicts", ".comparison", ".atOnce")


def cluster_with_nothing_to_report(desk: Desk) -> None:
    desk.server.seed(a_node("n1"), a_node("n2"), a_replica("web-1", "n1"), a_replica("huge", "n2"))


def cluster_with_much_to_report(desk: Desk) -> None:
    failed = a_node("n2", unschedulable=True)
    failed["metadata"]["annotations"] = {
        keys.PHASE: "Failed",
        keys.REASON: "reboot-overdue: it did not come back",
        keys.SINCE: "2026-03-04T12:00:00Z",
        keys.WARNING: "pods without a controller: shop/x",
        keys.PREPARED: "the forecast and the dry runs were thrown away: the Node n7 is new",
        keys.HOLD: "disk swap",
        keys.HISTORY: json.dumps(
            [
                {"at": "2026-03-01T12:00:00Z", "why": "kernel", "seconds": 300, "moves": 7},
                {"at": "2026-02-01T12:00:00Z"},
            ]
        ),
    }
    waiting = a_node("n1", annotations={keys.PHASE: "Waiting", keys.SINCE: "2026-03-04T12:00:00Z"})
    waiting["metadata"]["annotations"][keys.REFUSALS] = json.dumps(
        [
            {"gate": "alerts", "code": "alert", "sentence": "x", "since": "2026-03-04T12:00:00Z"},
            {"gate": "forecast", "code": "forecast-refuses", "sentence": "y", "since": "z", "remedy": "add a node"},
        ]
    )
    waiting["metadata"]["labels"][keys.REBOOT_LABEL] = "ready"
    desk.server.seed(waiting, failed, a_replica("web-1", "n1"), a_replica("huge", "n1", cpu="3900m"))
    desk.agent_on("n1")
    overdue = Overdue(phase="Rebooting", since="2026-03-04T12:00:00Z")
    entry = Entry(node="n2", id="c", failed="reboot-overdue", overdue=overdue, created="2026-03-04T12:00:00Z")
    desk.lock(LockContent(entries=(entry, Entry(node="gone", id="d")), max_owners=2, line=Line(names=("n1",))))


def paused_cluster(desk: Desk) -> None:
    cluster_with_nothing_to_report(desk)
    desk.lock(LockContent(is_paused=True, pause_reason="freeze"))


def cluster_with_an_unreadable_lock(desk: Desk) -> None:
    cluster_with_nothing_to_report(desk)
    desk.lock("what?")


CLUSTERS = (
    cluster_with_nothing_to_report,
    cluster_with_much_to_report,
    paused_cluster,
    cluster_with_an_unreadable_lock,
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, Any]]]:
    """Run each command in each test cluster. Return the parsed JSON and YAML outputs by command."""
    found = defaultdict(list)
    for fill in CLUSTERS:
        with server_in_thread() as server:
            desk = Desk(server, server.write_kubeconfig(tmp_path_factory.mktemp("desk") / "kubeconfig"))
            fill(desk)
            for words in ASKED:
                found[words[0] if words[0] != "lock" else "lock show"].append(said(desk, words))
    return found


def said(desk: Desk, words: tuple[str, ...]) -> tuple[Any, Any]:
    """Run one command with `--output json` and with `--output yaml`. Return both outputs as parsed values, or (None,
    None) if the command fails."""
    as_json, as_yaml = (desk.run(*words, "--output", form) for form in ("json", "yaml"))
    if as_json.exit_code in (0, 3, 4) and as_json.stdout:
        return json.loads(as_json.stdout), yaml.safe_load(as_yaml.stdout)
    assert as_json.exit_code == 1, as_json.output
    return None, None


def walked(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, each in value.items():
            yield from walked(each, f"{path}.*" if path.endswith(OPEN) else f"{path}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from walked(each, f"{path}[]")


NAMES = (
    "status",
    "history",
    "why",
    "forecast",
    "plan",
    "explain",
    "why-pending",
    "lock show",
    "cleanup",
    "config",
    "shadow",
)


def test_each_command_with_an_output_option_is_tested() -> None:
    with_output = {
        entry.name
        for entry in COMMANDS
        if "--output" in CliRunner().invoke(cli, [entry.name, "--help"]).output and entry.name != "agent"
    }
    assert with_output <= {words[0] for words in ASKED}


@pytest.mark.parametrize("name", NAMES)
def test_no_text_field_is_empty(answers: dict[str, list[tuple[Any, Any]]], name: str) -> None:
    empty = {path for value, _ in answers[name] for path, each in walked(value) if each == ""}
    assert empty == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_object_has_the_same_keys_in_every_output(
    answers: dict[str, list[tuple[Any, Any]]], name: str
) -> None:
    shapes = defaultdict(set)
    for value, _ in answers[name]:
        for path, each in walked({"forecasts": [value]} if name == "forecast" and "forecasts" not in value else value):
            if isinstance(each, dict) and not path.endswith(OPEN):
                shapes[path].add(tuple(sorted(each)))
    assert {path: found for path, found in shapes.items() if len(found) > 1} == {}
    assert len(shapes) > 0


@pytest.mark.parametrize("name", NAMES)
def test_yaml_output_equals_json_output(answers: dict[str, list[tuple[Any, Any]]], name: str) -> None:
    pairs = [(value, as_yaml) for value, as_yaml in answers[name] if value is not None]
    assert pairs
    assert [steady(value) for value, _ in pairs] == [steady(as_yaml) for _, as_yaml in pairs]


def steady(value: Any) -> Any:
    """Return each value of the parsed output together with its path. Values that depend on the time at which the
    command ran are left out."""
    later = ("madeAt", ".taken", ".begins", ".ends", ".seconds")
    return [
        (path, each)
        for path, each in walked(value)
        if not isinstance(each, dict | list) and not any(word in path for word in later)
    ]


def test_each_of_five_optional_json_fields_has_a_value_in_some_output(
    answers: dict[str, list[tuple[Any, Any]]],
) -> None:
    """An optional field can be null in the JSON output of a command. If a field were null in every output, the other
    tests of this file could not find an error in the field's values."""
    told = {path for name in NAMES for value, _ in answers[name] for path, each in walked(value) if each is not None}
    for path in (".nodes[].refusals[].remedy", ".pauseReason", ".holders[].overdue.phase", ".moves[].open", ".why"):
        assert path in told, path
