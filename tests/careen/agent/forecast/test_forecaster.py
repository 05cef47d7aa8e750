"""A child process of the agent makes the forecast. If the child fails in any way, the agent treats the forecast as
unknown, which does not allow a reboot."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from careen.agent.clock import SystemClock
from careen.agent.forecast import forecaster as forecast
from careen.agent.forecast.child import supported
from careen.agent.forecast.forecaster import ChildForecaster, Limits, Mistake, forecast_together
from careen.agent.forecast.order import ForecastRequest
from careen.agent.telemetry.metrics import Metrics
from careen.core.facts.observation import Unknown
from careen.core.facts.selectors import Selector
from drydock.server.testing import RunningServer, running_server
from scheduler_core.simulation.forecast import Forecast, Outcome
from scheduler_core.snapshot.dump import Header, write_dump
from tests.patience import LONG_SECONDS, growing

LIMITS = Limits(seconds=LONG_SECONDS, memory_bytes=512 * 2**20, scheduler_config="")


def forecaster(kubeconfig: Path, **limits: Any) -> ChildForecaster:
    return ChildForecaster(
        kubeconfig=str(kubeconfig), limits=lambda: replace(LIMITS, **limits), clock=SystemClock(), metrics=Metrics("n1")
    )


def put_cluster(server: RunningServer) -> None:
    """Create node n1 with two pods (one of a ReplicaSet, and one without a controller), and node n2 with room for one
    pod."""
    for name in ("n1", "n2"):
        server.seed(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {
                    "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"},
                    "capacity": {"cpu": "2", "memory": "4Gi", "pods": "10"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )
    server.seed(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "shop", "uid": "rs"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"replicas": 1, "readyReplicas": 1},
        }
    )
    owner = {
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
        ],
        "labels": {"app": "web"},
    }
    for name, metadata in (("web-1", owner), ("bare", {})):
        server.seed(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "shop", **metadata},
                "spec": {
                    "nodeName": "n1",
                    "schedulerName": "default-scheduler",
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
                },
                "status": {"phase": "Running"},
            }
        )


async def test_the_forecast_is_computed_in_a_child_process(tmp_path: Path) -> None:
    async with running_server() as server:
        put_cluster(server)
        answer = await forecaster(server.write_kubeconfig(tmp_path / "kc", user="agent")).forecast("n1")
        assert isinstance(answer, Forecast)
        found = {pod.name: (pod.outcome, pod.landing) for pod in answer.pods}
        assert found == {"web-1": (Outcome.MOVES, ("n2",)), "bare": (Outcome.LOST, ())}
        assert {record.agent.split("/")[0] for record in server.api.requests} == {"careen-forecast"}
        assert {record.verb for record in server.api.requests} <= {"get", "list"}
    assert "numpy" not in forecast.__dict__


async def test_a_pod_outside_the_drain_pod_selector_stays_on_its_node(tmp_path: Path) -> None:
    async with running_server() as server:
        put_cluster(server)
        answer = await forecaster(
            server.write_kubeconfig(tmp_path / "kc"), drain_pod_selector=Selector.parse("app=web")
        ).forecast("n1")
    assert isinstance(answer, Forecast)
    assert {pod.name: (pod.outcome, pod.sentence) for pod in answer.pods}["bare"] == (
        Outcome.STAYS,
        "--drain-pod-selector does not select the pod",
    )
    assert {pod.name: pod.outcome for pod in answer.pods}["web-1"] is Outcome.MOVES


async def test_nodes_that_are_drained_together_are_reported_in_the_requested_order(tmp_path: Path) -> None:
    """The request names n2 and then n1, so the forecast of n2 comes first. If only n1 were drained, its pod web-1 would
    move to n2. Here both nodes are drained, so no node has room for the pod, and the forecast of n1 says that the pod
    returns to n1."""
    async with running_server() as server:
        put_cluster(server)
        answer = await forecast_together(["n2", "n1"], LIMITS, kubeconfig=str(server.write_kubeconfig(tmp_path / "kc")))
    assert isinstance(answer, tuple)
    assert [each.node for each in answer] == ["n2", "n1"]
    assert {pod.name: pod.outcome for pod in answer[1].pods} == {"web-1": Outcome.RETURNS, "bare": Outcome.LOST}


async def test_a_forecast_can_read_a_dump_instead_of_the_cluster(tmp_path: Path) -> None:
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}
    with (tmp_path / "dump").open("wb") as file:
        write_dump(
            Header(kube_version="v1.29.0", taken_at="2026-01-02T03:04:05Z"),
            [json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [node]}).encode()],
            file,
        )
    answer = await forecast_together(["n1"], LIMITS, dump=str(tmp_path / "dump"))
    assert isinstance(answer, tuple)
    assert (answer[0].made_at, answer[0].notes) == (
        "2026-01-02T03:04:05Z",
        ("the cluster runs v1.29.0; the forecast assumes the scheduler of 1.32",),
    )


@pytest.mark.parametrize(("content", "words"), [(b"kind: Pod", "this is not a gzip file"), (b"", "the dump is empty")])
async def test_a_forecast_from_a_file_that_is_not_a_dump_is_a_usage_error(
    tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "dump").write_bytes(content)
    answer = await forecast_together(["n1"], LIMITS, dump=str(tmp_path / "dump"))
    assert isinstance(answer, Mistake)
    assert words in answer.why


async def test_the_forecast_uses_the_schedulers_configuration(tmp_path: Path) -> None:
    """The configuration has only one profile, and its schedulerName is not that of the pods. The forecast therefore
    cannot say on which nodes the pods will run."""
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- "
        "schedulerName: mine\n"
    )
    async with running_server() as server:
        put_cluster(server)
        answer = await forecaster(server.write_kubeconfig(tmp_path / "kc"), scheduler_config=text).forecast("n1")
    assert isinstance(answer, Forecast)
    assert {pod.name: pod.outcome for pod in answer.pods}["web-1"] is Outcome.UNKNOWN


@pytest.mark.parametrize("text", ["kind: Nothing", "[", "profiles: 7"])
async def test_an_unreadable_scheduler_configuration_makes_the_forecast_unknown(tmp_path: Path, text: str) -> None:
    async with running_server() as server:
        put_cluster(server)
        answer = await forecaster(server.write_kubeconfig(tmp_path / "kc"), scheduler_config=text).forecast("n1")
    assert isinstance(answer, Unknown)
    assert answer.why.startswith("--scheduler-config is not a KubeSchedulerConfiguration: ")


@pytest.mark.parametrize("padding", ["", "\n#" + "x" * 70_000, "\nx: &x 1\nhealthzBindAddress: *x"])
@pytest.mark.parametrize("field", ["certFile", "keyFile", "caFile"])
async def test_the_forecast_process_refuses_a_configuration_that_names_a_file(
    tmp_path: Path, field: str, padding: str
) -> None:
    """The child process that computes the forecast must check every scheduler configuration. The agent itself does not
    check a configuration that is very long or contains a YAML alias."""
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n"
        f"- urlPrefix: https://127.0.0.1:1\n  filterVerb: filter\n  tlsConfig: {{{field}: /no/such/file}}{padding}\n"
    )
    async with running_server() as server:
        put_cluster(server)
        kubeconfig = server.write_kubeconfig(tmp_path / "kc")
        refused = await forecaster(kubeconfig, scheduler_config=text).forecast("n1")
        trusted = await forecaster(kubeconfig, scheduler_config=text, may_name_files=True).forecast("n1")
    assert isinstance(refused, Unknown)
    assert f"extenders[0].tlsConfig.{field}: the field must not name a file" in refused.why
    assert "--config-map-may-name-files" in refused.why
    assert "must not name a file" not in str(trusted)


@pytest.mark.parametrize("field", ["certFile", "caFile"])
async def test_the_error_about_a_certificate_file_does_not_reveal_whether_the_file_exists(
    tmp_path: Path, field: str
) -> None:
    there, folder, absent = tmp_path / "there", tmp_path / "folder", tmp_path / "absent"
    there.write_text("no certificate")
    folder.mkdir()
    told = set()
    async with running_server() as server:
        put_cluster(server)
        kubeconfig = server.write_kubeconfig(tmp_path / "kc")
        for path in (there, folder, absent):
            text = (
                "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n"
                f"- urlPrefix: https://127.0.0.1:1\n  filterVerb: filter\n  tlsConfig: {{{field}: {path}, "
                f"keyFile: {path}}}\n"
            )
            answer = await forecaster(kubeconfig, scheduler_config=text, may_name_files=True).forecast("n1")
            assert isinstance(answer, Unknown)
            told.add(answer.why.replace(str(path), "PATH"))
    (sentence,) = told
    assert "cannot be used" in sentence


async def test_no_forecast_process_starts_if_the_scheduler_configuration_is_missing() -> None:
    metrics = Metrics("n1")
    asked = ChildForecaster(
        kubeconfig="/no/such", limits=lambda: Unknown("the file is gone"), clock=SystemClock(), metrics=metrics
    )
    assert await asked.forecast("n1") == Unknown("the file is gone")
    assert 'careen_forecasts_total{node="n1",result="unknown"} 1.0' in metrics.exposition().decode()


async def test_the_forecast_of_a_missing_node_is_unknown(tmp_path: Path) -> None:
    async with running_server() as server:
        put_cluster(server)
        answer = await forecaster(server.write_kubeconfig(tmp_path / "kc")).forecast("n9")
    assert isinstance(answer, Unknown)
    assert "n9" in answer.why


async def test_an_unknown_forecast_says_which_list_the_agent_may_not_read(tmp_path: Path) -> None:
    async with running_server(
        authorizer=lambda user, verb, group, resource, namespace, name: resource != "replicasets"
    ) as server:
        put_cluster(server)
        answer = await forecaster(server.write_kubeconfig(tmp_path / "kc")).forecast("n1")
    assert isinstance(answer, Unknown)
    assert "replicasets" in answer.why


async def test_an_unreachable_api_server_makes_the_forecast_unknown(tmp_path: Path, unused_tcp_port: int) -> None:
    from drydock.server.testing import write_kubeconfig

    answer = await forecaster(write_kubeconfig(tmp_path / "kc", f"http://127.0.0.1:{unused_tcp_port}")).forecast("n1")
    assert isinstance(answer, Unknown)
    assert "refused" in answer.why


@pytest.mark.parametrize(
    "mib",
    [pytest.param(9, id="too little memory to start Python"), pytest.param(16, id="too little memory to import numpy")],
)
async def test_a_forecast_with_too_little_memory_is_unknown_and_shows_the_limit(tmp_path: Path, mib: int) -> None:
    async with running_server() as server:
        put_cluster(server)
        answer = await forecaster(server.write_kubeconfig(tmp_path / "kc"), memory_bytes=mib * 2**20).forecast("n1")
    assert isinstance(answer, Unknown)
    assert "raise --forecast-memory" in answer.why


def child(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> None:
    """Write the Python code `program` to a file, and let the forecaster run this file instead of its child process."""
    script = folder / "python"
    script.write_text(f"#!{sys.executable}\n{textwrap.dedent(program)}")
    script.chmod(0o755)
    monkeypatch.setattr(forecast.sys, "executable", str(script))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        pytest.param(
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            "the simulation was killed, probably because memory ran out",
            id="the process is killed",
        ),
        pytest.param(
            "import sys\nsys.exit('ImportError: no numpy')",
            "the simulation ended with exit code 1: ImportError: no numpy",
            id="the process exits with an error",
        ),
        pytest.param("print('hello')", "the simulation's answer could not be read", id="the process prints no JSON"),
        pytest.param(
            "print('{}')", "the simulation's answer could not be read", id="the process prints an empty JSON object"
        ),
        pytest.param(
            'print(\'{"forecasts": [{"version": 9}]}\')',
            "the simulation's answer could not be read",
            id="the process prints a forecast with the unknown format version 9",
        ),
        pytest.param(
            'print(\'{"forecasts": [{"version": 1, "node": "n2", "madeAt": "", "notes": [], "pods": []}]}\')',
            "the simulation answered for other nodes than requested",
            id="the process prints the forecast of another node",
        ),
        pytest.param("pass", "the simulation's answer could not be read", id="the process prints nothing"),
    ],
)
async def test_a_failing_forecast_process_makes_the_forecast_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, words: str
) -> None:
    child(monkeypatch, tmp_path, program)
    answer = await forecaster(tmp_path / "kc").forecast("n1")
    assert isinstance(answer, Unknown)
    assert words in answer.why


async def test_a_forecast_process_that_exceeds_its_deadline_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child(
        monkeypatch,
        tmp_path,
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(3000)",
    )
    for seconds in growing(1.0):
        answer = await forecaster(tmp_path / "kc", seconds=seconds).forecast("n1")
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            break
    assert answer == Unknown(f"the simulation took longer than {seconds:.0f}s: raise --forecast-timeout")
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


async def test_a_forecast_process_is_killed_when_its_caller_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    child(
        monkeypatch,
        tmp_path,
        f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(3000)",
    )
    task = asyncio.create_task(forecaster(tmp_path / "kc").forecast("n1"))
    while not (pid_file.exists() and pid_file.read_text()):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{pid_file.read_text()}").exists()


async def test_a_forecast_process_that_cannot_start_makes_the_forecast_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(forecast.sys, "executable", str(tmp_path / "missing"))
    answer = await forecaster(tmp_path / "kc").forecast("n1")
    assert isinstance(answer, Unknown)
    assert "the simulation could not be started" in answer.why


async def test_a_metric_counts_the_forecasts_by_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    child(monkeypatch, tmp_path, "pass")
    metrics = Metrics("n1")
    await ChildForecaster(kubeconfig="", limits=lambda: LIMITS, clock=SystemClock(), metrics=metrics).forecast("n1")
    assert b'careen_forecasts_total{node="n1",result="unknown"} 1.0' in metrics.exposition()


def test_a_forecast_request_is_unchanged_by_json_encoding_and_decoding() -> None:
    order = ForecastRequest(
        nodes=("n1", "n2"),
        kubeconfig="/k",
        memory_bytes=7,
        scheduler_config="kind: A\n",
        may_name_files=True,
        context="c",
        dump="/d.gz",
        drain_pod_selector="a=b",
    )
    assert ForecastRequest.from_json(order.to_json().decode()) == order


@pytest.mark.parametrize(
    ("version", "used", "has_note"),
    [
        ("v1.35.4", "1.35", False),
        ("v1.36.3-eks-1", "1.36", False),
        ("v1.28.0", "1.32", True),
        ("v1.99.0", "1.37", True),
        ("", "1.37", True),
    ],
)
def test_the_forecast_uses_the_kubernetes_release_of_the_cluster(version: str, used: str, has_note: bool) -> None:
    found, note = supported(version)
    assert (found, bool(note)) == (used, has_note)
