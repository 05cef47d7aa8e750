"""`careen agent --sleep=auto` as a process: it replaces itself by the sleeper, and the sleeper by the agent."""

from __future__ import annotations

import re
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.careen.agent.test_process import Agent, Node, ask_for_a_reboot
from tests.careen.agent.test_process import node as node  # noqa: PLC0414 - a fixture
from tests.patience import wait_until


def command_line(agent: Agent) -> str:
    return Path(f"/proc/{agent.process.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def is_asleep(agent: Agent) -> bool:
    return "agent/asleep/" in command_line(agent)


def falls_asleep(node: Node, *flags: str) -> Agent:
    agent = node.start("--sleep=auto", "--host-lock-dir=/run/careen", *flags)
    wait_until(lambda: is_asleep(agent), lambda: f"the sleeper:\n{agent.log}")
    return agent


def sample(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    assert found is not None, f"{name} in:\n{text}"
    return float(found[1])


def test_an_idle_agent_sleeps_and_answers_probes_and_scrapes(node: Node) -> None:
    agent = falls_asleep(node)
    assert "asleep" in agent.get("/healthz")
    assert "asleep" in agent.get("/readyz")
    metrics = agent.get("/metrics")
    assert sample(metrics, "careen_asleep") == 1
    assert sample(metrics, 'careen_turns_total{end="done",node="n1"}') >= 1
    assert len(re.findall(r"^# TYPE (\S+) ", metrics, re.MULTILINE)) == len(
        set(re.findall(r"^# TYPE (\S+) ", metrics, re.MULTILINE))
    )
    assert command_line(agent).rstrip().endswith("--sleep=auto --host-lock-dir=/run/careen")


def test_a_sentinel_file_wakes_the_agent_which_sets_the_taint(node: Node) -> None:
    agent = falls_asleep(node)
    ask_for_a_reboot(node)
    wait_until(lambda: node.annotation("phase") != "", lambda: f"a phase:\n{agent.log}")
    assert not is_asleep(agent)


def test_a_persons_request_on_the_node_wakes_the_agent(node: Node) -> None:
    agent = falls_asleep(node)
    person_asks(node)
    wait_until(lambda: node.annotation("phase") != "", lambda: f"a phase:\n{agent.log}")


def person_asks(node: Node) -> None:
    found = node.server.get("nodes", "n1")
    assert found is not None
    found["metadata"].setdefault("annotations", {})["careen.dev/request"] = "reboot"
    node.server.seed(found)


def test_a_woken_agent_continues_its_counters(node: Node) -> None:
    agent = falls_asleep(node)
    before = agent.get("/metrics")
    ask_for_a_reboot(node)
    wait_until(
        lambda: "careen_asleep{" in (text := agent.get("/metrics")) and not sample(text, "careen_asleep"),
        agent.get("/metrics"),
    )
    wait_until(lambda: not is_asleep(agent), lambda: agent.log)
    after = agent.get("/metrics")
    for name in ('careen_turns_total{end="done",node="n1"}', "careen_turn_seconds_count"):
        assert sample(after, name) >= sample(before, name)
    got = 'careen_api_requests_total{method="GET",node="n1",status="200"}'
    assert sample(after, got) >= sample(before, got) > 1


def test_sigterm_ends_the_sleeper_at_once_and_without_an_error(node: Node) -> None:
    agent = falls_asleep(node)
    agent.process.send_signal(signal.SIGTERM)
    assert agent.ends() == 0
    assert "stops on request" in agent.log


@pytest.mark.parametrize("share", [each / 12 for each in range(12)])
def test_sigterm_at_any_instant_of_falling_asleep_and_waking_ends_the_process(node: Node, share: float) -> None:
    agent = falls_asleep(node)
    ask_for_a_reboot(node)
    time.sleep(2.5 * share)
    agent.process.send_signal(signal.SIGTERM)
    assert agent.ends() == 0


def test_no_probe_fails_while_the_agent_wakes(node: Node) -> None:
    agent = falls_asleep(node)
    failed: list[str] = []
    is_over = threading.Event()

    def probe() -> None:
        while not is_over.is_set():
            try:
                agent.get("/healthz")
                agent.get("/readyz")
            except OSError as error:
                failed.append(repr(error))

    prober = threading.Thread(target=probe)
    prober.start()
    ask_for_a_reboot(node)
    wait_until(lambda: node.annotation("phase") != "", lambda: f"a phase:\n{agent.log}")
    is_over.set()
    prober.join()
    assert failed == []
