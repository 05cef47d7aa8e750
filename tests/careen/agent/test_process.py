"""`careen agent` as a process: how it starts, which requests it sends when idle, and how it ends."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from drydock.rollout.patience import TimeLimit, crowding
from drydock.server.testing import RunningServer, server_in_thread
from tests.careen.services.webhook import running_webhook
from tests.patience import SECONDS, ended, run, wait_until


@dataclass
class Node:
    """A test node: its Node object in the cluster, the folder with the files of its host, and its agent processes."""

    server: RunningServer
    folder: Path
    processes: list[subprocess.Popen[str]]
    place: tuple[str, ...] = ("--ds-namespace=careen", "--ds-name=careen")

    @property
    def command(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "careen",
            "agent",
            "--node-id=n1",
            f"--kubeconfig={self.folder}/kubeconfig",
            f"--host-root={self.folder}/host",
            f"--boot-id-file={self.folder}/boot_id",
            "--host-exec=direct",
            f"--reboot-command=touch {self.folder}/rebooted",
            "--metrics-port=0",
            "--metrics-host=127.0.0.1",
            *self.place,
        ]

    def start(self, *flags: str, **environment: str) -> Agent:
        log = self.folder / f"log{len(self.processes)}"
        with log.open("w") as file:
            process = subprocess.Popen(
                [*self.command, *flags],
                stderr=file,
                stdout=file,
                text=True,
                cwd=self.folder,
                env={**os.environ, **environment},
            )
        self.processes.append(process)
        return Agent(process, log)

    def annotation(self, name: str) -> str:
        node = self.server.get("nodes", "n1")
        assert node is not None
        return str(node["metadata"].get("annotations", {}).get(f"careen.dev/{name}", ""))

    def put_config(self, text: str) -> None:
        self.server.seed(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "careen", "namespace": "careen"},
                "data": {"config.yaml": text},
            }
        )

    @property
    def requests(self) -> list[Any]:
        return [record for record in self.server.api.requests if record.user == "agent"]


@dataclass
class Agent:
    process: subprocess.Popen[str]
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def says(self, words: str) -> str:
        """Wait until the log matches this regular expression, and return the log."""
        wait_until(lambda: bool(re.search(words, self.log)), lambda: f"{words!r} in the log:\n{self.log}")
        return self.log

    def get(self, path: str) -> str:
        port = re.search(r"on port (\d+)", self.says("on port"))
        assert port is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}{path}") as response:
            return str(response.read().decode())

    def ends(self) -> int:
        return ended(self.process, lambda: self.log)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    (tmp_path / "host/var/run").mkdir(parents=True)
    (tmp_path / "boot_id").write_text("boot-n1\n")
    with server_in_thread() as server:
        server.seed(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n1"},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": "boot-n1"}},
            },
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "careen", "namespace": "careen"},
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]},
                    },
                },
                "status": {"desiredNumberScheduled": 1},  # no other node to wait for before the first claim
            },
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        )
        server.write_kubeconfig(tmp_path / "kubeconfig", user="agent")
        made = Node(server, tmp_path, [])
        yield made
        for process in made.processes:
            process.kill()
            process.wait()


def ask_for_a_reboot(node: Node) -> None:
    (node.folder / "host/var/run/reboot-required").touch()


# ---- starting ----


@pytest.mark.parametrize(
    ("flags", "environment", "words"),
    [
        (["--kubeconfig=/no/such/file"], {}, "the kubeconfig /no/such/file cannot be read"),
        (["--period=often"], {"KURED_BLOCKING_POD_SELEKTOR": "app=db"}, "KURED_BLOCKING_POD_SELEKTOR is not a setting"),
    ],
)
def test_an_agent_with_invalid_settings_exits_with_code_2(
    node: Node, flags: list[str], environment: dict[str, str], words: str
) -> None:
    agent = node.start(*flags, **environment)
    assert agent.ends() == 2
    assert words in agent.log
    assert "Traceback" not in agent.log
    assert node.requests == [], "the agent checks its settings before its first request"


def test_an_agent_does_not_start_if_the_daemonset_for_the_lock_is_missing(node: Node) -> None:
    """Without flags, an agent uses kured's default DaemonSet, which does not exist in this cluster."""
    node.place = ()
    ask_for_a_reboot(node)
    agent = node.start()
    assert agent.ends() == 2
    assert "DaemonSet kube-system/kured does not exist, but it must carry the lock" in agent.log
    assert "Traceback" not in agent.log
    assert {record.verb for record in node.requests} == {"get"}


def test_an_agent_with_an_invalid_config_map_exits_with_code_2(node: Node) -> None:
    node.put_config("concurrency: none")
    agent = node.start()
    assert agent.ends() == 2
    assert "`concurrency` in ConfigMap careen/careen is 'none'" in agent.log
    assert "Traceback" not in agent.log


def test_the_error_for_missing_credentials_suggests_the_flag_kubeconfig(tmp_path: Path) -> None:
    done = run([sys.executable, "-m", "careen", "agent", "--node-id=n1"])
    assert done.returncode == 2
    assert "give --kubeconfig FILE" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_agent_does_nothing_until_its_settings_are_known(node: Node) -> None:
    """The maintenance window in the ConfigMap applies to the agent's first decision, even if the API server starts
    later than the agent."""
    node.put_config("reboot-days: []\nprefer-no-schedule-taint: example.com/soon")
    node.server.api.is_down = True
    ask_for_a_reboot(node)
    agent = node.start()
    agent.says("the settings are not known yet, so the agent waits")
    node.server.api.is_down = False
    wait_until(lambda: node.annotation("phase") == "Waiting")
    found = node.server.get("nodes", "n1")
    assert found is not None
    assert [taint["key"] for taint in found["spec"]["taints"]] == ["example.com/soon"]
    wait_until(lambda: "outside-window" in node.annotation("refusals"))


def test_missing_rights_are_reported_at_start(node: Node) -> None:
    node.server.api.authorizer = lambda user, verb, group, resource, namespace, name: (
        not resource.startswith("pods/") and (verb, resource) != ("patch", "daemonsets")
    )
    log = node.start().says("the agent lacks the right to create pods/eviction")
    assert "to patch daemonsets.apps careen/careen. Without this right the agent writes claims into" in log
    assert "the agent lacks the right to list nodes" not in log


def test_a_failed_self_test_is_reported_at_start(node: Node) -> None:
    agent = node.start("--reboot-command=/no/such/program", "--reboot-sentinel=/not/mounted/reboot-required")
    agent.says("self-test: the agent cannot look for the sentinel file /not/mounted/reboot-required")
    agent.says("self-test: the host has no program /no/such/program")
    assert 'careen_self_test_problems{node="n1"} 2.0' in agent.get("/metrics")


def test_a_metrics_port_in_use_does_not_stop_the_agent(node: Node) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ask_for_a_reboot(node)
        agent = node.start(f"--metrics-port={taken.getsockname()[1]}")
        agent.says("cannot serve metrics")
        wait_until(lambda: node.annotation("phase") != "")


# ---- settings that change ----


def test_only_a_valid_edit_of_the_config_map_takes_effect(node: Node) -> None:
    node.put_config("reboot-days: []")
    ask_for_a_reboot(node)
    agent = node.start("--forecast=off")
    wait_until(lambda: "outside-window" in node.annotation("refusals"))
    wait_until(lambda: any(record.verb == "watch" for record in node.requests))
    edit(node, "reboot-days: [someday]")
    agent.says("the agent keeps the present settings")
    assert 'careen_config_ok{node="n1"} 0.0' in agent.get("/metrics")
    wait_until(lambda: bool(events(node, "BadSettings")))
    assert events(node, "BadSettings")[0]["involvedObject"]["name"] == "careen"
    assert "outside-window" in node.annotation("refusals")
    edit(node, "reboot-days: [mo,tu,we,th,fr,sa,su]")
    wait_until((node.folder / "rebooted").exists)
    assert 'careen_config_ok{node="n1"} 1.0' in agent.get("/metrics")


def test_an_invalid_edit_of_the_config_map_causes_one_event(node: Node) -> None:
    """Several agents see the same invalid edit. Their Events have the same name, so the API server keeps only one of
    them."""
    node.put_config("concurrency: 1")
    agents = [node.start("--sleep=off", "--host-lock-dir="), node.start("--sleep=off", "--host-lock-dir=")]
    for agent in agents:
        agent.says("metrics, health")
    wait_until(lambda: len([record for record in node.requests if record.verb == "watch"]) >= 2)
    edit(node, "reboot-days: [someday]")
    for agent in agents:
        agent.says("the agent keeps the present settings")
        wait_until(lambda agent=agent: 'careen_config_ok{node="n1"} 0.0' in agent.get("/metrics"))  # type: ignore[misc]
    wait_until(
        lambda: (
            len([record for record in node.requests if record.resource == "events" and record.verb == "create"]) >= 2
        )
    )
    assert len(events(node, "BadSettings")) == 1


def edit(node: Node, text: str) -> None:
    """Edit the ConfigMap as a person with kubectl does, so that watches receive the change."""
    request = urllib.request.Request(
        f"{node.server.url}/api/v1/namespaces/careen/configmaps/careen",
        method="PATCH",
        data=json.dumps({"data": {"config.yaml": text}}).encode(),
        headers={"Content-Type": "application/merge-patch+json", "Authorization": "Bearer person"},
    )
    with urllib.request.urlopen(request):
        pass


def events(node: Node, reason: str) -> list[Any]:
    journal = [change.after.content for change in list(node.server.store.journal) if change.after is not None]
    return [content for content in journal if content.get("kind") == "Event" and content["reason"] == reason]


# ---- a forecast that refuses ----


def test_a_lasting_forecast_refusal_is_reported_once_even_after_a_restart(node: Node) -> None:
    """No process computes a forecast within 10 ms. The forecast is unknown, so the node waits."""
    ask_for_a_reboot(node)
    flags = ("--forecast-timeout=10ms", "--forecast-patience=2s")
    for number in (1, 2):
        agent = node.start(*flags)
        agent.says("the forecast has refused the reboot of this node since")
        wait_until(lambda agent=agent: 'careen_forecast_overdue{node="n1"} 1.0' in agent.get("/metrics"))  # type: ignore[misc]
        wait_until(
            lambda number=number: (
                len(
                    [
                        record
                        for record in node.requests
                        if record.verb == "create" and record.resource == "events" and record.code in (201, 409)
                    ]
                )
                > number
            )
        )  # type: ignore[misc]
        agent.process.kill()
        agent.process.wait()
    (told,) = events(node, "ForecastOverdue")
    assert (told["involvedObject"]["name"], told["type"]) == ("n1", "Warning")
    assert "the forecast has refused the reboot of this node since" in told["message"]


# ---- messages to people ----


def test_a_hanging_webhook_does_not_delay_messages_to_another_webhook(node: Node) -> None:
    node.put_config('message-template-drain: "%s goes"')
    with running_webhook() as hook, running_webhook(hangs=True) as slow:
        urls = f"generic+http://{hook.address}/SECRETWORD\ngeneric+http://{slow.address}/SECRETWORD"
        seconds = math.ceil(4 * crowding())  # the child that sends must start within it
        agent = node.start("--forecast=off", f"--notify-timeout={seconds}s", CAREEN_NOTIFY_URL=urls)
        ask_for_a_reboot(node)
        wait_until((node.folder / "rebooted").exists)
        agent.says(
            r"the message to people through generic was not sent: the process that sends messages did not answer "
            rf"within {seconds} s(.|\n)*the process that sends messages did not answer within {seconds} s"
        )
        assert hook.texts == ["n1 goes", "Rebooting node n1"]
        metrics = agent.get("/metrics")
    assert 'careen_messages_total{node="n1",result="sent",service="generic"} 2.0' in metrics
    assert 'careen_messages_total{node="n1",result="failed",service="generic"} 2.0' in metrics
    journal = [change.after.content for change in node.server.store.journal if change.after is not None]
    assert "SECRET" not in agent.log + metrics + json.dumps(journal)


def test_an_agent_with_an_unusable_message_url_exits_and_does_not_print_the_url(node: Node) -> None:
    agent = node.start(CAREEN_NOTIFY_URL="pager://SECRETWORD")
    assert agent.ends() == 2
    assert "CAREEN_NOTIFY_URL is a secret: expected a shoutrrr URL of one of bark, discord, generic" in agent.log
    assert "SECRET" not in agent.log


def test_an_agent_with_an_unusable_url_in_its_url_file_exits_and_does_not_print_the_url(node: Node) -> None:
    (node.folder / "urls").write_text("logger://\ntgram://SECRETWORD\n")
    agent = node.start(f"--notify-url-file={node.folder}/urls")
    assert agent.ends() == 2
    assert "--notify-url-file: tgram: apprise does not accept this URL; it expects tgram://" in agent.log
    assert "SECRET" not in agent.log


def test_a_delay_is_reported_once_to_a_receiver_added_to_the_url_file_after_the_start(node: Node) -> None:
    held = {"name": "n1", "annotations": {"careen.dev/hold": "the disk is replaced"}}
    node.server.seed({"apiVersion": "v1", "kind": "Node", "metadata": held})
    node.put_config("period: 1h")
    template = "--message-template-blocked={cluster}/{node}: {reason}"
    agent = node.start(
        f"--notify-url-file={node.folder}/urls", "--notify-blocked-after=1s", "--cluster-name=prod", template
    )
    ask_for_a_reboot(node)
    wait_until(lambda: "held" in node.annotation("refusals"))
    with running_webhook() as hook:
        (node.folder / "urls").write_text(f"generic+http://{hook.address}/SECRETWORD\n")
        seconds = 60
        while "the agent tells people: prod/n1: " not in agent.log:
            seconds += 60
            edit(node, f"period: {seconds}s")  # each edit makes a turn
            wait_until(lambda changes=seconds // 60 - 1: agent.log.count("period is now") == changes)
        wait_until(lambda: hook.texts)
        edit(node, "period: 100h")
        agent.says("period is now 100h")
    assert len(hook.texts) == 1
    assert re.fullmatch(r"prod/n1: .*the disk is replaced.*", hook.texts[0])
    assert len(events(node, "HeldBack")) == 1
    assert "SECRET" not in agent.log


# ---- being idle ----


def test_an_idle_agent_reads_its_node_once_and_then_only_checks_the_sentinel(node: Node) -> None:
    agent = node.start("--sleep=off")
    wait_until(lambda: any(record.verb == "watch" for record in node.requests))
    agent.says("does not ask for a reboot|nothing|no need|Idle")
    patience, settled = TimeLimit(SECONDS), -1
    while settled != len(node.requests):
        assert not patience.is_over(), f"the agent still sends requests: {node.requests[-5:]}"
        settled = len(node.requests)
        time.sleep(6)  # longer than the five seconds between two turns of an idle agent
    assert [(record.verb, record.resource, record.name) for record in node.requests].count(("get", "nodes", "n1")) == 1
    assert agent.get("/healthz")


def test_a_running_agent_does_not_load_modules_that_need_much_memory(node: Node) -> None:
    """The test checks an agent that runs kopf and all other parts."""
    heavy = [
        "apprise",
        "numpy",
        "rich",
        "requests",
        "requests_oauthlib",
        "oauthlib",
        "websocket",
        "prometheus_api_client",
        "kubernetes.client.models.v1_pod",
        "kubernetes.client.api.core_v1_api",
        "kubernetes.aio",
        "kubernetes_asyncio",
        "pandas",
    ]
    program = (
        f"""
import asyncio, json, os, signal, sys, threading, time
sys.argv = {node.command[2:]!r}
def report():
    while "kopf" not in sys.modules:
        time.sleep(0.1)
    used = -1.0
    while time.process_time() - used > 0.05:        # until it has nothing to do any more
        used = time.process_time()
        time.sleep(5)
    heavy = {json.dumps(heavy)}
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(json.dumps({{"heavy": [name for name in heavy if name in sys.modules], """
        f""""kopf": "kopf" in sys.modules, "rss": int(status["VmRSS"].split()[0]) / 1024}}), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=report, daemon=True).start()
from careen.cli import main
main({[*node.command[3:], "--sleep=off"]!r})
"""
    )
    done = run([sys.executable, "-c", program], cwd=node.folder)
    assert done.returncode == 0, done.stderr
    carried = json.loads(done.stdout)
    assert (carried["heavy"], carried["kopf"]) == ([], True)
    assert carried["rss"] <= 72


# ---- ending ----


def hang(node: Node, agent_asks: str) -> threading.Event:
    """Delay the response to each request whose description contains `agent_asks` by a minute. Return an event that is
    set at the first of these requests."""
    hanging = threading.Event()
    node.server.api.plan = lambda info, user, may_be_stale: _slow(hanging) if agent_asks in str(info) else None  # type: ignore[assignment]
    return hanging


def _slow(hanging: threading.Event) -> Any:
    from drydock.server.faults import Fault, FaultKind

    hanging.set()
    return Fault(kind=FaultKind.SLOW, seconds=60.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_agent_stops_on_sigterm_or_sigint(node: Node, number: signal.Signals) -> None:
    agent = node.start("--sleep=off")
    wait_until(lambda: any(record.verb == "watch" for record in node.requests))
    agent.process.send_signal(number)
    assert agent.ends() == 0
    assert "the agent stops on request" in agent.log
    assert "Traceback" not in agent.log


def test_an_agent_stops_on_sigterm_while_the_api_server_is_silent(node: Node) -> None:
    hanging = hang(node, "daemonsets")
    ask_for_a_reboot(node)
    agent = node.start()
    hanging.wait()
    agent.process.send_signal(signal.SIGTERM)
    assert agent.ends() == 0
    assert "Traceback" not in agent.log


def test_an_agent_stops_on_sigterm_before_it_knows_its_settings(node: Node) -> None:
    node.server.api.is_down = True
    agent = node.start()
    agent.says("on port")
    agent.process.send_signal(signal.SIGTERM)
    assert agent.ends() == 0
    assert "Traceback" not in agent.log


def start_of_the_image(node: Node) -> Agent:
    """Start the agent as the image does. The start script of the image blocks SIGTERM in its first line, before Python
    begins."""
    script = node.folder / "kured"
    script.write_text(
        f"#!/usr/bin/env -S --block-signal=TERM {sys.executable}\nfrom careen.__main__ import main\nmain()\n"
    )
    script.chmod(0o755)
    log = node.folder / f"log{len(node.processes)}"
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(script), *node.command[4:]], stderr=file, stdout=file, text=True, cwd=node.folder
        )
    node.processes.append(process)
    # Before this, `env` itself starts: the one moment in which a signal still ends the process in its own way.
    wait_until(lambda: "python" in Path(f"/proc/{process.pid}/exe").readlink().name)
    return Agent(process, log)


def test_an_agent_that_is_stopped_at_any_moment_of_its_start_exits_with_0(node: Node) -> None:
    """The test sends SIGTERM at 25 moments of the start. It measures the moments in processor time of the agent, so
    that they do not depend on the load of the machine."""
    agent = start_of_the_image(node)
    agent.says("on port")
    whole = _processor_seconds(agent)
    agent.process.send_signal(signal.SIGTERM)
    assert agent.ends() == 0
    codes = {}
    for moment in range(25):
        agent = start_of_the_image(node)
        _works(agent, until=whole * moment / 20)
        agent.process.send_signal(signal.SIGTERM)
        codes[moment] = agent.ends()
        assert "Traceback" not in agent.log
    assert set(codes.values()) == {0}, codes


def _works(agent: Agent, *, until: float) -> None:
    """Until this much processor time is used, or the agent, cheaper than the first, has started and uses no more."""
    last, alike = -1.0, 0

    def is_over() -> bool:
        nonlocal last, alike
        used = _processor_seconds(agent)
        last, alike = used, alike + 1 if used == last else 0
        return used >= until or (alike >= 100 and "on port" in agent.log)

    wait_until(is_over)


def _processor_seconds(agent: Agent) -> float:
    """Return the processor time of the agent's process so far, or infinity after the process has ended."""
    try:
        fields = Path(f"/proc/{agent.process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.inf
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- two agents ----


def test_a_second_agent_on_the_node_waits_until_the_first_agent_ends(node: Node) -> None:
    node.put_config("reboot-days: []")
    first = node.start()
    wait_until(lambda: any(record.verb == "watch" for record in node.requests))
    second = node.start()
    second.says("another agent of this node has locked the file")
    assert "on port" in second.log
    asked = {record.agent for record in node.requests}
    assert asked
    ask_for_a_reboot(node)
    wait_until(lambda: node.annotation("phase") == "Waiting")
    first.process.kill()
    first.process.wait()
    second.says("host asks for a reboot|outside|window")
    assert 'careen_only_agent{node="n1"} 1.0' in second.get("/metrics")
