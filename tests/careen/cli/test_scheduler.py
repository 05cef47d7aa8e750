"""Runs `careen scheduler` as a process on the embedded API server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from drydock.server.kinds.resources import resource_named
from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_plan import a_node
from tests.careen.cli.test_shadow import a_pod, post
from tests.patience import ended, wait_until
from tests.scheduler_core.extenders.extender_server import ExtenderServer

LEASE = "kube-system/careen-scheduler"


@pytest.fixture
def town(desk: Desk) -> Desk:
    namespaces = ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in ("shop", "kube-system"))
    desk.server.seed(*namespaces, *(a_node(f"n{number}", cpu="4") for number in range(3)))
    return desk


@contextmanager
def scheduling(
    desk: Desk, folder: Path, *words: str, name: str = "one", **variables: str
) -> Iterator[tuple[subprocess.Popen[str], Callable[[], str]]]:
    """Yields the process and a function that reads what it said."""
    said = folder / f"{name}.log"
    with said.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "careen", "scheduler", "--kubeconfig", str(desk.kubeconfig), *words],
            stdout=out,
            stderr=out,
            text=True,
            env={**os.environ, **variables},
        )
    try:
        yield process, said.read_text
    finally:
        process.kill()
        process.wait()


def come(desk: Desk, *names: str, cpu: int = 100) -> None:
    for name in names:
        post(desk, "pods", a_pod(name, cpu=cpu, scheduler="careen-scheduler"))


def configured(folder: Path, configuration: dict[str, Any]) -> tuple[str, str]:
    """Words for a scheduler with this configuration."""
    file = folder / "config.yaml"
    file.write_text(json.dumps(configuration))
    return "--config", str(file)


def filtering(folder: Path, plugin: str, **args: str) -> tuple[str, str]:
    """Words for a scheduler whose profile enables the plugin for Filter."""
    profile: dict[str, Any] = {
        "schedulerName": "careen-scheduler",
        "plugins": {"filter": {"enabled": [{"name": plugin}]}},
    }
    if args:
        profile["pluginConfig"] = [{"name": plugin, "args": args}]
    return configured(folder, {"profiles": [profile]})


def objects(desk: Desk, plural: str) -> dict[str, Any]:
    return {
        "/".join(filter(None, item.key)): item.content
        for item in desk.server.store.items(resource_named(plural).storage, "")
    }


def node_of(desk: Desk, name: str) -> str:
    return str(objects(desk, "pods")[f"shop/{name}"]["spec"].get("nodeName", ""))


def holder(desk: Desk) -> str:
    lease = objects(desk, "leases").get(LEASE)
    return str(lease["spec"]["holderIdentity"]) if lease else ""


def test_pods_are_bound_and_told_and_the_lease_is_released_at_the_end(town: Desk, tmp_path: Path) -> None:
    with scheduling(town, tmp_path, "--identity", "first", "-v", "3") as (process, said):
        come(town, "web-1", "web-2")
        wait_until(lambda: node_of(town, "web-1") and node_of(town, "web-2"), said)
        wait_until(lambda: len(objects(town, "events")) == 2, said)
        assert holder(town).startswith("first_")
        process.send_signal(signal.SIGTERM)
        assert ended(process, said) == 0
    assert holder(town) == ""
    lines = said()
    assert '"Attempting to schedule pod" pod="shop/web-1"' in lines
    assert re.search(
        r'"Successfully bound pod to node" pod="shop/web-1" node="n\d" evaluatedNodes=3 feasibleNodes=3', lines
    )
    assert {each["reason"] for each in objects(town, "events").values()} == {"Scheduled"}


def test_a_pod_that_fits_nowhere_says_why_once_and_is_bound_when_a_node_comes(town: Desk, tmp_path: Path) -> None:
    with scheduling(town, tmp_path) as (process, said):
        come(town, "large", cpu=6000)
        wait_until(lambda: objects(town, "pods")["shop/large"]["status"].get("conditions"), said)
        (refused,) = objects(town, "pods")["shop/large"]["status"]["conditions"]
        assert (refused["type"], refused["reason"]) == ("PodScheduled", "Unschedulable")
        assert refused["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
        town.server.seed(a_node("n9", cpu="8"))
        wait_until(lambda: node_of(town, "large") == "n9", said)
        assert process.poll() is None
    patches = [each for each in town.server.api.requests if (each.verb, each.subresource) == ("patch", "status")]
    assert len(patches) == 1


def test_pods_of_other_schedulers_are_left_alone(town: Desk, tmp_path: Path) -> None:
    with scheduling(town, tmp_path) as (_, said):
        post(town, "pods", a_pod("theirs", scheduler="default-scheduler"))
        come(town, "ours")
        wait_until(lambda: node_of(town, "ours"), said)
    assert node_of(town, "theirs") == ""


def test_a_second_scheduler_waits_and_goes_on_when_the_first_has_ended(town: Desk, tmp_path: Path) -> None:
    with scheduling(town, tmp_path, "--identity", "first") as (first, said):
        wait_until(lambda: holder(town).startswith("first_"), said)
        with scheduling(town, tmp_path, "--identity", "second", name="two") as (_, said_too):
            come(town, "early")
            wait_until(lambda: node_of(town, "early"), said)
            assert "Successfully bound" not in said_too()
            first.send_signal(signal.SIGTERM)
            assert ended(first, said) == 0
            come(town, "late")
            wait_until(lambda: node_of(town, "late"), said_too)
            assert holder(town).startswith("second_")


def test_a_scheduler_whose_lease_another_one_took_ends_at_once(town: Desk, tmp_path: Path) -> None:
    with scheduling(town, tmp_path, "--identity", "first") as (process, said):
        wait_until(lambda: holder(town), said)
        lease = objects(town, "leases")[LEASE]
        town.server.seed({**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
        assert ended(process, said) == 1
    assert f"lost the Lease {LEASE}" in said()


PLUGIN = """
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler_core.framework.verdict import SUCCESS, unschedulable


@dataclass(frozen=True)
class OnlyOne:
    node: str
    name: ClassVar[str] = "OnlyOne"

    def filter(self, state, pod, node_info):
        return SUCCESS if node_info.node.name == self.node else unschedulable("not the one")


def only_one(args, kube_version):
    return OnlyOne(args["node"])
"""


def test_a_plugin_in_a_file_decides(town: Desk, tmp_path: Path) -> None:
    (tmp_path / "only.py").write_text(PLUGIN)
    words = (*filtering(tmp_path, "OnlyOne", node="n2"), "--plugin", f"OnlyOne={tmp_path}/only.py:only_one")
    with scheduling(town, tmp_path, *words) as (_, said):
        come(town, "a", "b", "c")
        wait_until(lambda: all(node_of(town, name) for name in "abc"), said)
    assert {node_of(town, name) for name in "abc"} == {"n2"}


def test_a_plugin_of_an_installed_package_decides_if_a_profile_enables_it(town: Desk, tmp_path: Path) -> None:
    (tmp_path / "only.py").write_text(PLUGIN)
    package = tmp_path / "only-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: only\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[careen.scheduler_plugins]\nOnlyOne = only:only_one\nUnused = no_such_module:f\n"
    )
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    with scheduling(town, tmp_path, *filtering(tmp_path, "OnlyOne", node="n2"), PYTHONPATH=path) as (_, said):
        come(town, "a", "b", "c")
        wait_until(lambda: all(node_of(town, name) for name in "abc"), said)
    assert {node_of(town, name) for name in "abc"} == {"n2"}


def test_lists_come_as_the_beginning_of_watches_which_go_on(town: Desk, tmp_path: Path) -> None:
    with scheduling(town, tmp_path) as (_, said):
        wait_until(lambda: "careen schedules: 3 nodes" in said(), said)
        come(town, "web-1")
        wait_until(lambda: node_of(town, "web-1"), said)
    asked = [each for each in town.server.api.requests if each.resource in ("pods", "nodes")]
    assert [(each.verb, each.resource) for each in asked if each.verb in ("list", "watch")].count(
        ("watch", "pods")
    ) == 1
    assert not [each for each in asked if each.verb == "list"]


def answer_of(said: Callable[[], str], path: str) -> tuple[int, str]:
    """Status and text, from the scheduler's own server."""
    (port,) = re.findall(r"on port (\d+)", said())
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, answer.read().decode()


def test_metrics_have_kube_schedulers_names(town: Desk, tmp_path: Path) -> None:
    with scheduling(town, tmp_path, "--metrics-port", "0", "--metrics-host", "127.0.0.1") as (_, said):
        come(town, "web-1")
        wait_until(lambda: node_of(town, "web-1"), said)

        def metrics() -> str:
            return answer_of(said, "/metrics")[1]

        bound = 'scheduler_schedule_attempts_total{profile="careen-scheduler",result="scheduled"} 1.0'
        wait_until(lambda: bound in metrics(), metrics)
        wait_until(lambda: 'scheduler_cache_size{type="nodes"} 3.0' in metrics(), metrics)
        assert answer_of(said, "/readyz")[0] == 200


def test_an_extender_decides_and_a_slow_one_holds_up_no_watch(town: Desk, tmp_path: Path) -> None:
    with ExtenderServer({"filter": lambda _body: {"NodeNames": ["n2"]}}).running() as server:
        extender = {"urlPrefix": server.url, "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "60s"}
        config = {"profiles": [{"schedulerName": "careen-scheduler"}], "extenders": [extender]}
        words = (*configured(tmp_path, config), "--metrics-port", "0", "--metrics-host", "127.0.0.1")
        with scheduling(town, tmp_path, *words) as (_, said):
            come(town, "a")
            wait_until(lambda: node_of(town, "a"), said)

            def metrics() -> str:
                return answer_of(said, "/metrics")[1]

            server.delay_seconds = 3600.0
            come(town, "b")
            wait_until(lambda: len(server.asked("filter")) == 2, said)
            town.server.seed(a_node("n3", cpu="4"))
            wait_until(lambda: 'scheduler_cache_size{type="nodes"} 4.0' in metrics(), metrics)
            assert not node_of(town, "b")
    assert node_of(town, "a") == "n2"


WAITING = """
import time
from scheduler_core.framework.verdict import SUCCESS

class Waits:
    name = "Waits"

    def filter(self, state, pod, node_info):
        if pod.name == "slow":
            time.sleep(3600)
        return SUCCESS

def waits(args, kube_version):
    return Waits()
"""


def test_a_plugin_that_waits_holds_up_no_watch_and_no_end(town: Desk, tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITING)
    words = (*filtering(tmp_path, "Waits"), "--plugin", f"Waits={tmp_path}/waits.py:waits")
    with scheduling(town, tmp_path, *words, "--metrics-port", "0", "--metrics-host", "127.0.0.1") as (process, said):
        come(town, "quick")
        wait_until(lambda: node_of(town, "quick"), said)
        come(town, "slow")
        town.server.seed(a_node("n3", cpu="4"))

        def metrics() -> str:
            return answer_of(said, "/metrics")[1]

        wait_until(lambda: 'scheduler_cache_size{type="nodes"} 4.0' in metrics(), metrics)
        process.send_signal(signal.SIGTERM)
        assert ended(process, said) == 0
    assert not node_of(town, "slow")
    assert holder(town) == ""


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param("1 / 0", "ZeroDivisionError: division by zero", id="a file that raises"),
        pytest.param("import sys; sys.exit(0)", "cannot be loaded: SystemExit: 0", id="a file that exits"),
        pytest.param("def f(args, version): raise KeyError('limit')", "raised KeyError: 'limit'", id="a factory"),
        pytest.param("def f(args, version): return 5", "its `name` must be 'X'", id="no plugin"),
        pytest.param(
            "def f(args): return None",
            "raised TypeError: f() takes 1 positional argument",
            id="a factory with other parameters",
        ),
        pytest.param(
            "class X:\n  name = 'X'\n  def filter(self, pod): ...\ndef f(args, version): return X()",
            "filter(pod) is called with (state, pod, node_info)",
            id="a method with other parameters",
        ),
    ],
)
def test_a_plugin_that_cannot_be_used_ends_the_process_with_one_sentence(
    town: Desk, tmp_path: Path, source: str, why: str
) -> None:
    (tmp_path / "x.py").write_text(source)
    with scheduling(town, tmp_path, *filtering(tmp_path, "X"), "--plugin", f"X={tmp_path}/x.py:f") as (process, said):
        assert ended(process, said) == 2
    assert why in " ".join(said().split())
    assert "Traceback" not in said()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--plugin", "X"), "write NAME=FILE.py:FACTORY"),
        (("--plugin", "X=/nowhere.py:f"), "there is no file /nowhere.py"),
        (("--plugin", "X=no_such_module:f"), "cannot be loaded"),
        (("--plugin", "X=json:nothing"), "json has no function nothing"),
        (("--metrics-port", "70000"), "70000 is not in the range"),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_request(desk: Desk, words: tuple[str, ...], why: str) -> None:
    done = desk.run("scheduler", *words)
    assert done.exit_code == 2, done.output
    assert why in " ".join(done.output.split())
    assert not desk.server.api.requests


def test_a_configuration_with_a_section_that_cannot_be_obeyed_is_refused(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("enableProfiling: true\n")
    done = desk.run("scheduler", "--config", str(tmp_path / "config.yaml"))
    assert done.exit_code == 2
    assert "enableProfiling: this scheduler serves no profiles" in " ".join(done.output.split())
