"""Tests that a person who may only edit the ConfigMap cannot become root on the hosts."""

from __future__ import annotations

import json

import pytest

from tests.cluster.harness.cluster import CAREEN
from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.story import Story

pytestmark = pytest.mark.cluster


def refused(name: str) -> str:
    where = f"`{name}` in ConfigMap {CAREEN.namespace}/careen"
    why = "the setting decides what runs as root on every host"
    return f"{where}: the setting {name} is not allowed in the ConfigMap: {why}"


def log_of(host: Host) -> str:
    return host.log.read_text() if host.log.exists() else ""


def looks_at_once(story: Story, host: Host) -> None:
    """An idle agent sleeps, and would see the edit within five minutes."""
    assert story.command("recheck", host.name).returncode == 0


def test_a_command_in_the_config_map_is_refused_at_start_and_at_runtime(story: Story) -> None:
    """The agent keeps its current settings and gates. It reboots the host with the command from its flags."""
    (host,) = story.nodes(1)
    evil = story.folder / "ran-as-root"
    story.settings(reboot_sentinel_command=f"touch {evil}", reboot_command=f"touch {evil}", reboot_days=[])
    metric = f'careen_config_ok{{node="{host.name}"}} '
    looks_at_once(story, host)
    story.wait_for("the agent refuses the edit", lambda: f"{metric}0.0" in story.metrics(host))
    assert refused("reboot-command") in log_of(host)
    assert refused("reboot-sentinel-command") in log_of(host)
    assert "--config-map-may-run-commands" in log_of(host)

    def messages() -> list[str]:
        events = story.admin.list(f"/api/v1/namespaces/{CAREEN.namespace}/events")
        return [each["message"] for each in events if each["reason"] == "BadSettings"]

    story.wait_for(
        "an Event reports the refused edit", lambda: any(refused("reboot-command") in each for each in messages())
    )
    story.need_reboot([host])
    # `reboot_days=[]` in the ConfigMap would forbid every reboot. The agent has refused this edit, so the host reboots.
    story.finishes([host])

    host.agent_wanted = False
    story.wait_for("the agent has ended", lambda: host.agent is None)
    host.agent_wanted = True
    story.wait_for("the agent refuses to start", lambda: any(code == 2 for _, code in host.crashes))
    assert f"careen agent: {refused('reboot-command')}" in log_of(host)
    assert not evil.exists()

    story.settings(concurrency=1)
    story.agents_answer()
    assert f"{metric}1.0" in story.metrics(host)
    host.crashes = [each for each in host.crashes if each[1] != 2]  # refused at the start, as expected
    story.judge()


def test_a_scheduler_configuration_in_the_config_map_cannot_refer_to_files(story: Story) -> None:
    """The agent is root on the host. If the configuration could refer to files, the agent would send the host's
    certificates to an extender that the editor chose."""
    (host,) = story.nodes(1)
    names_files = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [
            {
                "urlPrefix": "https://thief.example",
                "filterVerb": "filter",
                "tlsConfig": {"certFile": "/var/lib/kubelet/pki/kubelet-client-current.pem", "keyFile": "/etc/shadow"},
            }
        ],
    }
    data = {"config.yaml": "scheduler-config: configmap:scheduler.yaml\n", "scheduler.yaml": json.dumps(names_files)}
    story.admin.patch(f"/api/v1/namespaces/{CAREEN.namespace}/configmaps/careen", {"data": data})
    looks_at_once(story, host)
    story.wait_for(
        "the agent refuses the edit", lambda: f'careen_config_ok{{node="{host.name}"}} 0.0' in story.metrics(host)
    )
    for name in ("certFile", "keyFile"):
        assert f"extenders[0].tlsConfig.{name}: the field must not name a file" in log_of(host)
    assert "--config-map-may-name-files" in log_of(host)
    story.settings(concurrency=1)
    story.agents_answer()
    story.judge()
