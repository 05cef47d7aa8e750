"""Tests `careen shadow` on the embedded API server: with a scheduler that decides as scheduler_core does, and with a
scheduler that decides differently."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from drydock.server.kinds.resources import resource_named
from scheduler_core import Scheduler
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot
from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_plan import a_node
from tests.patience import ended, wait_until

Choose = Callable[[Snapshot, str], str]


def a_pod(name: str, *, cpu: int = 100, scheduler: str = "default-scheduler", node: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{cpu}m"}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Pending"},
    }


def post(desk: Desk, path: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(
        f"{desk.server.url}/api/v1/namespaces/shop/{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": "Bearer scheduler"},
    )
    with urllib.request.urlopen(request) as answer:
        answer.read()


@contextmanager
def scheduling(desk: Desk, choose: Choose, *, scheduler: str = "default-scheduler") -> Iterator[None]:
    """Until the `with` block ends, create pods one after another, and bind each pod to the node that `choose`
    returns."""
    is_over, chance = threading.Event(), random.Random(1)

    def come_and_go() -> None:
        for number in range(200):
            if is_over.wait(0.03):
                return
            pod = a_pod(f"web-{number}", cpu=100 * chance.randint(1, 3), scheduler=scheduler)
            post(desk, "pods", pod)
            node = choose(snapshot_of(desk), f"shop/web-{number}")
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"web-{number}"}}
            post(desk, f"pods/web-{number}/binding", {**binding, "target": {"kind": "Node", "name": node}})

    thread = threading.Thread(target=come_and_go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def snapshot_of(desk: Desk) -> Snapshot:
    kinds = {"nodes": "Node", "pods": "Pod"}
    return load_objects(
        {**item.content, "kind": kind, "apiVersion": "v1"}
        for plural, kind in kinds.items()
        for item in desk.server.store.items(resource_named(plural).storage, "")
    )


def as_scheduler_core(snapshot: Snapshot, key: str) -> str:
    return Scheduler().schedule(snapshot, snapshot.pod(key)).node or ""


def the_worst(snapshot: Snapshot, key: str) -> str:
    result = Scheduler().schedule(snapshot, snapshot.pod(key))
    return min(result.scores, key=lambda name: (result.scores[name].total, name))


@pytest.fixture
def town(desk: Desk) -> Desk:
    desk.server.seed(*(a_node(f"n{number}", cpu=str(8 + number)) for number in range(6)), a_pod("first", node="n1"))
    return desk


def test_shadow_reports_agreement_with_a_scheduler_of_the_same_rules(town: Desk) -> None:
    with scheduling(town, as_scheduler_core):
        done = town.run("shadow", "--once", "--bindings", "10", "--for", "600", "--output", "json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["agreed"] >= 10
    assert (said["disagreed"], said["agreement"], said["otherConfiguration"]) == (0, 1.0, False)
    assert said["disagreements"] == []


def test_shadow_explains_why_a_scheduler_with_other_rules_decides_differently(town: Desk) -> None:
    with scheduling(town, the_worst):
        done = town.run("shadow", "--once", "--bindings", "40", "--for", "600", "--last", "2", "--output", "json")
    assert done.exit_code == 3, done.output
    said = json.loads(done.stdout)
    assert said["otherConfiguration"]
    assert said["agreement"] < 0.8
    (cause,) = said["likelyCauses"]
    assert "do not have the highest score: the scheduler probably has other score plugins" in cause
    assert len(said["disagreements"]) == 2
    last = said["disagreements"][-1]
    assert last["reason"] == "other-node"
    assert last["why"].startswith(f"{last['node']} has the score ")
    assert last["node"] not in {each["node"] for each in last["said"]}


def test_the_table_of_shadow_shows_the_counts_and_the_last_disagreements(town: Desk) -> None:
    with scheduling(town, the_worst):
        done = town.run("shadow", "--once", "--bindings", "3", "--for", "600")
    assert done.exit_code in (0, 3), "with so few comparisons, both exit codes are correct"
    assert done.stdout.startswith("6 nodes and ")
    assert re.search(r"default-scheduler +disagreed +other-node +\d", done.stdout)
    assert "The last " in done.stdout
    assert re.search(
        r"shop/web-\d+: scheduler_core expected n\d.*, kube-scheduler chose n\d: n\d has the score \d+; the highest "
        r"score is",
        done.stderr,
    )


def test_shadow_reports_that_pods_have_another_scheduler(town: Desk) -> None:
    with scheduling(town, lambda *_: "n1", scheduler="gang"):
        done = town.run("shadow", "--once", "--for", "3", "--output", "json")
    assert done.exit_code == 4, done.output
    said = json.loads(done.stdout)
    assert said["profiles"][0]["profile"] == "gang"
    assert set(said["profiles"][0]["reasons"]) == {"other-scheduler"}
    assert "have the schedulerName gang" in said["likelyCauses"][0]


def test_shadow_says_that_it_compared_no_pod_if_no_pod_was_bound(town: Desk) -> None:
    done = town.run("shadow", "--once", "--for", "1")
    assert done.exit_code == 4
    assert "no bound pod could be compared" in done.stdout


def test_shadow_sends_only_read_requests(town: Desk) -> None:
    before = town.writes()
    town.server.api.requests.clear()
    town.run("shadow", "--once", "--for", "1")
    assert {each.verb for each in town.server.api.requests if each.resource} == {"get", "list", "watch"}
    assert town.writes() == before


def test_forecast_and_plan_accept_the_dump_that_shadow_writes(town: Desk, tmp_path: Path) -> None:
    file = tmp_path / "dump.json.gz"
    town.run("shadow", "--once", "--for", "1", "--snapshot", str(file))
    assert town.json("forecast", "n1", "--from", str(file))["node"] == "n1"
    assert "n1" in town.run("plan", "--from", str(file)).stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--profile", "nobody"), "the configuration has no profile 'nobody'; its profiles are default-scheduler"),
        (("--bindings", "0"), "0 is not in the range"),
        (("--for", "0"), "0 is not in the range"),
        (("--metrics-port", "70000"), "70000 is not in the range"),
        (("--snapshot", "/nowhere/dump"), "there is no folder /nowhere"),
        (("--metrics-port", "0", "--metrics-host", "no such host"), "is neither an address nor a name"),
    ],
)
def test_shadow_refuses_an_invalid_option(town: Desk, words: tuple[str, ...], why: str) -> None:
    done = town.run("shadow", "--once", "--for", "1", *words)
    assert done.exit_code == 2, done.output
    assert why in done.output


def test_shadow_reports_a_missing_right(town: Desk) -> None:
    town.server.api.authorizer = lambda _user, verb, _group, resource, *_: (verb, resource) != ("list", "services")
    done = town.run("shadow", "--once", "--for", "600")
    assert done.exit_code == 1
    assert "a right is missing" in done.output


@contextmanager
def running(desk: Desk, folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[], str]]]:
    """Run `careen shadow` in a separate process. Yield the process and a function that reads its error output."""
    errors = folder / "errors"
    with errors.open("w") as said, (folder / "output").open("w") as output:
        command = [sys.executable, "-m", "careen", "shadow", "--kubeconfig", str(desk.kubeconfig), *words]
        process = subprocess.Popen(command, stdout=output, stderr=said, text=True)
    try:
        yield process, errors.read_text
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(("number", "is_written"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_shadow_ends_on_sigint_with_a_dump_and_on_sigterm_without_a_dump(
    town: Desk, tmp_path: Path, number: signal.Signals, is_written: bool
) -> None:
    dump = tmp_path / "dump.json.gz"
    with running(town, tmp_path, "--snapshot", str(dump)) as (process, said):
        wait_until(lambda: "Ctrl-C ends the command and prints the results" in said(), said)
        process.send_signal(number)
        assert ended(process, said) == 4
    assert "6 nodes and 1 pod" in (tmp_path / "output").read_text()
    assert dump.exists() is is_written


def test_shadow_writes_a_dump_on_sigusr1_and_continues_to_run(town: Desk, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json.gz"
    with running(town, tmp_path, "--snapshot", str(dump)) as (process, said):
        wait_until(lambda: "Ctrl-C ends the command and prints the results" in said(), said)
        process.send_signal(signal.SIGUSR1)
        wait_until(lambda: "bytes, compressed" in said(), said)
        assert process.poll() is None
        assert town.json("forecast", "n1", "--from", str(dump))["node"] == "n1"


def test_shadow_serves_metrics_and_readiness_while_it_runs(town: Desk, tmp_path: Path) -> None:
    with running(town, tmp_path, "--metrics-port", "0", "--metrics-host", "127.0.0.1") as (process, said):
        wait_until(lambda: "Ctrl-C ends the command and prints the results" in said(), said)
        (port,) = re.findall(r"on port (\d+)", said())
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 200
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert "careen_shadow_nodes 6.0" in answer.read().decode()
        process.send_signal(signal.SIGTERM)
        assert ended(process, said) == 4
