"""`careen agent --sleep=auto` as a process: it replaces itself by the sleeper, and the sleeper by the agent."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.careen.agent.test_process import Agent, Node, ask_for_a_reboot, edit, events
from tests.careen.agent.test_process import node as node  # noqa: PLC0414 - a fixture
from tests.careen.agent.test_start_stories import create_config, delete_config
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


@pytest.mark.parametrize("share", [each / 6 for each in range(6)])
def test_after_a_sigkill_at_any_instant_of_waking_the_next_agent_sets_the_taint(node: Node, share: float) -> None:
    agent = falls_asleep(node)
    ask_for_a_reboot(node)
    time.sleep(2.5 * share)
    agent.process.kill()
    agent.process.wait()
    after = node.start("--host-lock-dir=/run/careen")
    wait_until(lambda: node.annotation("phase") != "", lambda: f"a phase:\n{after.log}")
    assert "has locked the file" not in after.log


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


# ---- settings that change while the agent sleeps ----


def disturb(node: Node) -> None:
    """A new label wakes the agent, which then has nothing to do."""
    found = node.server.get("nodes", "n1")
    assert found is not None
    found["metadata"].setdefault("labels", {})["at"] = str(time.monotonic())
    node.server.seed(found)


def wakes_and_sleeps_again(node: Node, agent: Agent) -> str:
    """Until it has slept once more; its log."""
    before = agent.log.count("sleeps for at most")
    disturb(node)
    wait_until(lambda: agent.log.count("sleeps for at most") > before, lambda: agent.log)
    wait_until(lambda: is_asleep(agent), lambda: agent.log)
    return agent.log


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda node: edit(node, "reboot-days: [someday]"), "the agent keeps the present settings.*someday"),
        (lambda node: edit(node, "reboot-days: ["), "the agent keeps the present settings.*is not YAML"),
        (lambda node: edit(node, "reboot-dayz: [mo]"), "the agent keeps the present settings.*reboot-dayz"),
        (delete_config, "ConfigMap careen/careen was deleted, and its settings stay in force"),
    ],
    ids=["a bad value", "no YAML", "an unknown key", "deleted"],
)
def test_a_woken_agent_keeps_its_settings_as_one_that_is_awake(
    node: Node, spoil: Callable[[Node], None], words: str
) -> None:
    node.put_config("reboot-days: []")
    agent = falls_asleep(node, "--forecast=off")
    spoil(node)
    ask_for_a_reboot(node)
    agent.says(words)
    wait_until(lambda: "outside-window" in node.annotation("refusals"), lambda: agent.log)
    assert 'careen_config_ok{node="n1"} 0.0' in agent.get("/metrics")
    wait_until(lambda: bool(events(node, "BadSettings")), lambda: agent.log)
    (told,) = events(node, "BadSettings")
    assert (told["involvedObject"]["name"], told["involvedObject"]["uid"]) == ("careen", "uid-configmaps-careen-careen")
    assert "outside-window" in node.annotation("refusals")
    assert not (node.folder / "rebooted").exists()
    repair = create_config if spoil is delete_config else edit
    repair(node, "reboot-days: [mo,tu,we,th,fr,sa,su]")
    wait_until((node.folder / "rebooted").exists, lambda: agent.log)
    assert 'careen_config_ok{node="n1"} 1.0' in agent.get("/metrics")
    assert agent.log.count("the agent keeps the present settings") + agent.log.count("was deleted") == 1


def test_refused_settings_are_reported_once_and_shown_until_they_are_repaired(node: Node) -> None:
    node.put_config("reboot-days: [mo]")
    agent = falls_asleep(node)
    edit(node, "reboot-days: [someday]")
    for _ in range(2):
        log = wakes_and_sleeps_again(node, agent)
        assert log.count("the agent keeps the present settings") == 1
        assert 'careen_config_ok{node="n1"} 0.0' in agent.get("/metrics")
    assert len(events(node, "BadSettings")) == 1
    edit(node, "reboot-days: [tu]")
    log = wakes_and_sleeps_again(node, agent)
    assert "the setting reboot-days is now tu" in log
    assert 'careen_config_ok{node="n1"} 1.0' in agent.get("/metrics")
    edit(node, "reboot-days: [someday]")
    assert wakes_and_sleeps_again(node, agent).count("the agent keeps the present settings") == 2


def test_a_woken_agent_takes_usable_settings_also_those_that_need_a_restart(node: Node) -> None:
    node.put_config("reboot-days: [mo]")
    agent = falls_asleep(node)
    edit(node, "reboot-sentinel: /var/run/other")
    assert "the setting reboot-sentinel is now /var/run/other" in wakes_and_sleeps_again(node, agent)
    (node.folder / "host/var/run/other").touch()
    wait_until(lambda: node.annotation("phase") != "", lambda: f"a phase:\n{agent.log}")


def test_a_config_map_that_appears_while_the_agent_sleeps_is_met_as_by_one_that_is_awake(node: Node) -> None:
    agent = falls_asleep(node)
    node.put_config("concurrency: none")
    assert "the agent keeps the present settings" in wakes_and_sleeps_again(node, agent)
    edit(node, "concurrency: 2")
    assert "the setting concurrency is now 2" in wakes_and_sleeps_again(node, agent)


@pytest.mark.parametrize("is_edited", [False, True])
def test_a_key_that_the_admission_policies_refuse_is_reported_although_the_agent_sleeps(
    node: Node, is_edited: bool
) -> None:
    found = node.server.get("daemonsets", "careen", "careen")
    assert found is not None
    annotations = {"admission.careen.dev/labels": "listed"}
    node.server.seed({**found, "metadata": {**found["metadata"], "annotations": annotations}})
    refused = "pre-reboot-node-labels: [listed=yes, other=yes]"
    node.put_config("pre-reboot-node-labels: [listed=yes]" if is_edited else refused)
    agent = falls_asleep(node)
    if is_edited:
        assert "needs `other`" not in agent.log
        edit(node, refused)
        wakes_and_sleeps_again(node, agent)
    assert agent.log.count("--pre-reboot-node-labels needs `other`") == 1
    assert len(events(node, "KeysNotAllowed")) == 1
    assert wakes_and_sleeps_again(node, agent).count("--pre-reboot-node-labels needs `other`") == 1


def test_an_agent_with_too_long_settings_stays_awake(node: Node) -> None:
    node.put_config(f"reboot-days: [mo]\n# {'x' * 70_000}")
    agent = node.start("--sleep=auto", "--host-lock-dir=/run/careen", "--log-level=debug")
    agent.says("the ConfigMap has 70[0-9]+ characters, too many to keep while the agent sleeps")
    wait_until(lambda: any(record.verb == "watch" for record in node.requests), lambda: agent.log)
    assert not is_asleep(agent)


def test_a_file_of_receivers_that_becomes_unusable_does_not_end_a_woken_agent(node: Node) -> None:
    (node.folder / "urls").write_text("logger://\n")
    agent = falls_asleep(node, f"--notify-url-file={node.folder}/urls")
    (node.folder / "urls").write_text("logger://\ntgram://SECRETWORD\n")
    wakes_and_sleeps_again(node, agent)


def test_a_scheduler_configuration_that_disappears_does_not_end_a_woken_agent(node: Node) -> None:
    file = node.folder / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    agent = falls_asleep(node, f"--scheduler-config={file}")
    file.unlink()
    ask_for_a_reboot(node)
    wait_until(lambda: "forecast-unknown" in node.annotation("refusals"), lambda: agent.log)
    assert f"--scheduler-config: the file {file} does not exist" in node.annotation("refusals")
