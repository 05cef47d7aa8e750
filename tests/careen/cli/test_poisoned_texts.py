"""Runs every command on a cluster in which each text that a client can write contains unsafe characters. The commands
escape these texts, keep each on one line, and print the original text in JSON.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from careen.cli import COMMANDS, cli
from careen.core.facts import keys
from careen.core.lock.reading import LockReading
from drydock.server.testing import server_in_thread
from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_plan import a_node, a_replica
from tests.careen.poisoned_texts import LONG, MARK, POISON, strings_in, unfit, unfit_json
from tests.patience import run

REFUSALS = json.dumps(
    [
        {"gate": "hold", "code": "held", "sentence": POISON, "since": "2026-03-04T11:00:00Z", "remedy": POISON},
        {"gate": POISON, "code": "alerts", "sentence": POISON, "since": None},
    ]
)


def annotations(phase: str, text: str) -> dict[str, str]:
    return {
        keys.PHASE: phase,
        keys.SINCE: "2026-03-04T12:00:00Z",
        keys.REASON: text,
        keys.REFUSALS: REFUSALS,
        keys.HOLD: text,
        keys.WARNING: text,
        keys.PROGRESS: json.dumps({"version": 1, "phase": phase, "claim": POISON, "failed": POISON}),
    }


LOCK = {
    "nodeID": POISON,
    "maxOwners": 3,
    "reason": POISON,
    "locks": [
        {"nodeID": POISON, "id": POISON, "created": POISON, "groups": [POISON], "failed": POISON, "boot": POISON},
        {"nodeID": "n2", "id": "c2", "created": "2026-03-04T11:00:00Z", "groups": [POISON]},
    ],
    "next": [POISON, "n1"],
    "nextAt": POISON,
    "waiting": 2,
}
LOCKS: dict[str, str] = {
    "claims": json.dumps(LOCK),
    "a pause": json.dumps({**LOCK, "nodeID": "manual"}),
    "garbage": f"{{{POISON}",
    "garbage of 150 KB": LONG,
}


def a_poisoned_cluster(desk: Desk, lock: str, text: str) -> None:
    waiting, failed, working = (a_node(name) for name in ("n1", "n2", "n3"))
    strange = a_node(f"n4-{POISON}", cpu="0")
    for node, phase in ((waiting, "Waiting"), (failed, "Failed"), (working, POISON), (strange, "Waiting")):
        node["metadata"]["annotations"] = annotations(phase, text)
        node["metadata"]["labels"][keys.REBOOT_LABEL] = POISON if phase == POISON else "required"
        node["metadata"]["managedFields"] = [
            {"manager": POISON, "operation": "Update", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
        ]
    working["spec"] = {
        "unschedulable": True,
        "taints": [{"key": POISON, "value": POISON, "effect": "NoSchedule"}],
    }
    desk.server.seed(waiting, failed, working, strange)
    desk.lock(lock, flags=["--concurrency=2"])
    owned = a_replica(f"web-{POISON}", "n1", owner=POISON)
    stuck = a_replica("big", "n1", cpu="3500m")
    stuck["spec"]["nodeSelector"] = {POISON: POISON}
    other = a_replica("other", "n1")
    other["spec"]["schedulerName"] = POISON
    desk.server.seed(owned, stuck, other, a_replica("web-2", "n2", cpu="4", owner=POISON), a_budget())


def a_budget() -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{POISON}", "namespace": "shop"},
        "spec": {"minAvailable": 9, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 9, "expectedPods": 1},
    }


# Each command with plausible arguments; `{folder}` is the test's own folder.
CALLS: dict[str, tuple[str, ...]] = {
    "status": ("status",),
    "status, busy": ("status", "--busy"),
    "watch": ("watch", "--once"),
    "`why` for a waiting node": ("why", "n1"),
    "`why` for a failed node": ("why", "n2"),
    "`why` for a cordoned node": ("why", "n3"),
    "`why` for a node with a poisoned name": ("why", f"n4-{POISON}"),
    "`why` for a node that does not exist": ("why", POISON),
    "lock show": ("lock", "show"),
    "lock pause": ("lock", "pause", "--reason", "a fan"),
    "lock resume": ("lock", "resume"),
    "lock release": ("lock", "release", "n2", "--yes"),
    "`lock release` for a node without a claim": ("lock", "release", "n9", "--yes"),
    "hold": ("hold", "n1", "--reason", POISON),
    "hold, an invalid end time": ("hold", "n1", "--reason", "a fan", "--until", POISON),
    "unhold": ("unhold", "n1"),
    "retry": ("retry", "n2"),
    "recheck": ("recheck", "n2"),
    "history": ("history",),
    "reboot": ("reboot", "n1", "--reason", POISON, "--no-wait"),
    "drain": ("drain", "n1", "--reason", POISON, "--no-wait"),
    "maintenance": ("maintenance", "n1", "--reason", POISON, "--until", POISON),
    "maintenance, handed back": ("maintenance", "n1", "--end", "--no-wait"),
    "retry, a busy node": ("retry", "n3"),
    "forecast": ("forecast", "n1"),
    "`forecast` for a node that does not exist": ("forecast", POISON),
    "plan": ("plan", "--start", "2199-03-04T22:00:00Z"),
    "plan, waiting": ("plan", "--waiting", "--compare", "--start", "2199-03-04T22:00:00Z"),
    "`plan` with a setting that does not exist": ("plan", "--set", POISON),
    "`plan` for a node that does not exist": ("plan", POISON),
    "explain": ("explain", "shop/big"),
    "explain on a node": ("explain", "shop/big", "--node", f"n4-{POISON}"),
    "`explain` for a pod that does not exist": ("explain", POISON),
    "why-pending": ("why-pending", "shop/big"),
    "`why-pending` of a scheduler that cannot be asked": ("why-pending", "shop/big", "--scheduler", POISON),
    "`explain` with a file that is not a dump": ("explain", "shop/big", "--from", "{folder}/poison"),
    "cleanup": ("cleanup",),
    "cleanup, everything": (
        *("cleanup", "--kured", "--unknown", "--key", POISON, "--even-rebooting", "--even-with-agents", "--yes"),
    ),
    "cleanup, refused": ("cleanup", "--yes"),
    "config": ("config",),
    "config, a bad flag": ("config", "--here", "--node-id", "n1", "--period", POISON),
    "snapshot": ("snapshot", "--file", "{folder}/dump"),
    "shadow": ("shadow", "--once", "--for", "1"),
    "no such context": ("status", "--context", POISON),
    "no such command": (POISON,),
    "no such option": ("status", f"--{POISON}"),
    "demo, no such rule": ("demo", "--break", POISON),
}
WITH_JSON = [
    name
    for name, call in CALLS.items()
    if call[0] in ("status", "why", "lock", "forecast", "plan", "explain", "cleanup", "config")
]

READ_THE_LOCK = {"status", "watch", "why", "lock", "plan", "cleanup"}
"""The commands whose output depends on the lock. These commands are tested with each lock content in `LOCKS`."""


@pytest.fixture(params=LOCKS)
def poisoned(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    with server_in_thread() as server:
        desk = Desk(server, server.write_kubeconfig(tmp_path / "kubeconfig"))
        text = LOCKS[request.param]
        a_poisoned_cluster(desk, text, LONG if text == LONG else POISON)
        yield desk


def with_locks(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs (lock content, command) to test. A command that reads the lock is tested with each lock content.
    Any other command is tested only with the lock content `claims` and with the very long lock content."""
    return [
        (lock, name)
        for name in names
        for lock, text in LOCKS.items()
        if CALLS[name][0] in READ_THE_LOCK or lock == "claims" or text == LONG
    ]


def called(desk: Desk, folder: Path, *arguments: str) -> Result:
    (folder / "poison").write_text(POISON)
    return desk.run(*(each.replace("{folder}", str(folder)) for each in arguments))


@pytest.mark.parametrize(("poisoned", "name"), with_locks(CALLS), indirect=["poisoned"])
def test_the_output_of_every_command_is_safe_to_display(poisoned: Desk, tmp_path: Path, name: str) -> None:
    done = called(poisoned, tmp_path, *CALLS[name])
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert unfit(done.output) == []


@pytest.mark.parametrize("poisoned", ["claims"], indirect=True)
def test_the_list_of_commands_that_read_the_lock_is_complete(
    poisoned: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, readers = LockReading.of, set[str]()

    class Watched:
        """Wraps the parsed lock, and records which command reads the lock's fields."""

        def __init__(self, by: str, reading: LockReading) -> None:
            self._by, self._reading = by, reading

        def __getattr__(self, name: str) -> object:
            if name == "content":
                readers.add(self._by)
            return getattr(self._reading, name)

    for call in CALLS.values():
        monkeypatch.setattr(
            LockReading, "of", lambda text, by=call[0], **others: Watched(by, real(text, **others)), raising=True
        )
        called(poisoned, tmp_path, *call)
    assert readers == READ_THE_LOCK


def test_the_poisoned_texts_occur_in_the_output_of_the_commands(poisoned: Desk, tmp_path: Path) -> None:
    """If the output contained no poisoned text, the other tests of this file would check nothing."""
    said = {name: called(poisoned, tmp_path, *CALLS[name]).output for name in CALLS}
    assert {name for name, text in said.items() if MARK in text} >= {
        "status",
        "`why` for a waiting node",
        "`why` for a failed node",
        "`why` for a node that does not exist",
        "lock show",
        "hold, an invalid end time",
        "forecast",
        "plan",
        "explain",
        "no such command",
    }


@pytest.mark.parametrize(("poisoned", "name"), with_locks(WITH_JSON), indirect=["poisoned"])
def test_json_is_valid_and_harmless_to_a_terminal(poisoned: Desk, tmp_path: Path, name: str) -> None:
    arguments = CALLS[name]
    if arguments[:2] in (("lock", "pause"), ("lock", "resume"), ("lock", "release")):
        arguments = ("lock", "show")
    done = called(poisoned, tmp_path, *arguments, "--output", "json")
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    if done.stdout.strip().startswith("{"):
        assert unfit_json(done.stdout) == []
    assert unfit(done.stderr) == []


def test_json_keeps_the_original_text(poisoned: Desk) -> None:
    nodes = {each["name"]: each for each in poisoned.json("status")["nodes"]}
    written = poisoned.annotations("n1")
    assert nodes["n1"]["reason"] == written[keys.REASON]
    assert nodes["n1"]["hold"] == written[keys.HOLD]
    assert f"n4-{POISON}" in nodes
    assert poisoned.json("lock", "show")["raw"] == poisoned.lock_text()
    assert any(POISON in each for each in strings_in(poisoned.json("lock", "show")))


def test_the_report_page_of_a_plan_is_safe_to_display(poisoned: Desk, tmp_path: Path) -> None:
    poisoned.run("plan", "--start", "2199-03-04T22:00:00Z", "--report", str(tmp_path / "plan.html"))
    page = (tmp_path / "plan.html").read_text()
    assert MARK in page
    assert unfit(page) == []
    assert "<b>markup" not in page


def test_the_output_for_a_poisoned_dump_is_safe_to_display(poisoned: Desk, tmp_path: Path) -> None:
    dump = str(tmp_path / "dump.gz")
    assert unfit(called(poisoned, tmp_path, "snapshot", "--file", dump).output) == []
    with gzip.open(dump, "rt") as file:
        assert MARK in file.read()
    for arguments in (("explain", "shop/big"), ("plan", "--start", "2199-03-04T22:00:00Z"), ("forecast", "n1")):
        done = called(poisoned, tmp_path, *arguments, "--from", dump)
        assert unfit(done.output) == [], arguments


STATUS = {"kind": "Status", "status": "Failure", "reason": POISON, "message": POISON, "code": 403}
ANSWERS: dict[str, tuple[int, bytes]] = {
    "a Status": (403, json.dumps(STATUS).encode()),
    "a long Status": (500, json.dumps({**STATUS, "message": LONG}).encode()),
    "a page of a proxy": (502, f"<html>{POISON}</html>".encode()),
    "a page of a proxy in an unknown encoding": (200, b"\xff\xfe\x1b[31m\nFORGED \xc2\x9b"),
    "a Node with another name": (200, json.dumps({"kind": POISON, "metadata": {"name": POISON}}).encode()),
    "half of a surrogate pair": (200, b'{"kind":"Node","metadata":{"name":"\\ud800"}}'),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
@pytest.mark.parametrize(
    "call", [("status",), ("why", "n1"), ("lock", "show"), ("retry", "n1"), ("plan",), ("config",)]
)
def test_a_servers_error_message_is_made_safe_to_display(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...], answer: tuple[int, bytes]
) -> None:
    from careen.cluster.wire.client import ClientTransport
    from careen.cluster.wire.transport import Request, Response

    async def send(_self: ClientTransport, _request: Request) -> Response:
        return Response(status=answer[0], headers={}, body=answer[1])

    monkeypatch.setattr(ClientTransport, "send", send)
    monkeypatch.setattr("careen.cluster.wire.api.READ_PATIENCE_SECONDS", 0.0)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], "
        "users: [{name: u, user: {}}], contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}"
    )
    done = CliRunner().invoke(cli, list(call), env={"KUBECONFIG": str(kubeconfig)})
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert unfit(done.output) == []


def test_an_agent_that_refuses_its_flags_prints_text_that_is_safe_to_display() -> None:
    """An agent that refuses its flags ends its process, so the test runs the agent in a separate process."""
    flag = POISON.replace("\0", "")  # a command line cannot contain this text
    done = run([sys.executable, "-m", "careen", "agent", "--node-id", "n1", "--period", flag])
    assert done.returncode == 2
    assert MARK in done.stderr
    assert unfit(done.stderr) == []


def test_every_command_runs_on_the_poisoned_cluster() -> None:
    """Except those that run until they are interrupted. tests/careen/report/live tests the texts of the page, and
    tests/careen/scheduler those of the log."""
    assert {entry.name for entry in COMMANDS} - {call[0] for call in CALLS.values()} == {"agent", "serve", "scheduler"}
