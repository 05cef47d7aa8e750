"""The settings become invalid before or after a real agent process reboots its node. The tests show which settings the
agent then uses, which nodes return to service, and what the agents report."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from careen.core.facts import keys
from drydock.server.faults import Fault
from drydock.server.requests.info import RequestInfo
from tests.careen.agent import test_process
from tests.careen.agent.test_process import Agent, Node, ask_for_a_reboot, edit, events, wait_until
from tests.patience import LONG_SECONDS

node = test_process.node  # the fixture

GOOD = "post-reboot-node-labels: [back=yes]\nreboot-sentinel: /var/run/reboot-required\n"
BAD = "concurrency: none"


def call(node: Node, method: str, path: str, body: Any = None) -> None:
    """Send a request as a person with kubectl does."""
    request = urllib.request.Request(
        f"{node.server.url}{path}",
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Content-Type": "application/json", "Authorization": "Bearer person"},
    )
    with urllib.request.urlopen(request, timeout=LONG_SECONDS):
        pass


CONFIG_MAPS = "/api/v1/namespaces/careen/configmaps"


def delete_config(node: Node) -> None:
    call(node, "DELETE", f"{CONFIG_MAPS}/careen")


def create_config(node: Node, text: str) -> None:
    call(
        node,
        "POST",
        CONFIG_MAPS,
        {"metadata": {"name": "careen", "namespace": "careen"}, "data": {"config.yaml": text}},
    )


def the_node(node: Node) -> dict[str, Any]:
    found = node.server.get("nodes", "n1")
    assert found is not None
    return found


def is_cordoned(node: Node) -> bool:
    return bool(the_node(node)["spec"].get("unschedulable"))


def locks(node: Node) -> list[Any]:
    found = node.server.get("daemonsets", "careen", "careen")
    assert found is not None
    content = found["metadata"].get("annotations", {}).get(keys.LOCK_ANNOTATION, "{}")
    return list(json.loads(content).get("locks", []))


def is_ready(agent: Agent) -> bool:
    try:
        return bool(agent.get("/readyz"))
    except urllib.error.HTTPError:
        return False


def has_followed(node: Node) -> bool:
    return any(record.verb == "watch" for record in node.requests)


def reboot_under(node: Node, text: str) -> None:
    """Let an agent with these settings claim, drain and reboot its node. Then kill the agent and give the host a new
    boot id. After this boot, the host needs no reboot."""
    node.put_config(text)
    ask_for_a_reboot(node)
    agent = node.start("--forecast=off")
    wait_until((node.folder / "rebooted").exists, lambda: agent.log)
    wait_until(lambda: node.annotation("phase") == "Rebooting")
    agent.process.kill()
    agent.process.wait()
    (node.folder / "host/var/run/reboot-required").unlink()
    (node.folder / "boot_id").write_text("boot-n1-after\n")
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": "boot-n1-after"}}
    node.server.seed({**the_node(node), "status": status})
    assert is_cordoned(node)
    assert [entry["nodeID"] for entry in locks(node)] == ["n1"]


# ---- a ConfigMap that is deleted ----


def test_the_maintenance_window_stays_closed_while_the_config_map_is_deleted(node: Node) -> None:
    """`kubectl replace --force` and GitOps tools delete the ConfigMap and create it again. Agents must not reboot nodes
    while the ConfigMap with the maintenance window is missing."""
    node.put_config("reboot-days: []")
    ask_for_a_reboot(node)
    agent = node.start("--forecast=off")
    wait_until(lambda: "outside-window" in node.annotation("refusals"))
    wait_until(lambda: has_followed(node))
    delete_config(node)
    agent.says("ConfigMap careen/careen was deleted, and its settings stay in force")
    wait_until(lambda: 'careen_config_ok{node="n1"} 0.0' in agent.get("/metrics"))
    wait_until(lambda: bool(events(node, "BadSettings")))
    (told,) = events(node, "BadSettings")
    assert (told["involvedObject"]["name"], told["involvedObject"]["uid"]) == ("careen", "uid-configmaps-careen-careen")
    assert "outside-window" in node.annotation("refusals")
    assert not (node.folder / "rebooted").exists()
    create_config(node, "reboot-days: [mo,tu,we,th,fr,sa,su]")
    wait_until((node.folder / "rebooted").exists, lambda: agent.log)
    assert 'careen_config_ok{node="n1"} 1.0' in agent.get("/metrics")


def test_a_config_map_that_is_deleted_just_before_its_watch_begins_is_reported(node: Node) -> None:
    """A watch begins with the present objects, so it says nothing of this one."""

    def deleted_at_the_first_list(info: RequestInfo, _user: str, _may_be_stale: bool) -> Fault | None:
        if (info.verb, info.resource.plural) == ("list", "configmaps") and node.server.get(
            "configmaps", "careen", "careen"
        ):
            node.server.store.remove(info.resource.storage, ("careen", "careen"), actor="person", verb="delete")
        return None

    node.put_config("reboot-days: []")
    node.server.api.plan = deleted_at_the_first_list
    ask_for_a_reboot(node)
    agent = node.start("--forecast=off")
    agent.says("ConfigMap careen/careen was deleted, and its settings stay in force")
    wait_until(lambda: 'careen_config_ok{node="n1"} 0.0' in agent.get("/metrics"))
    assert "outside-window" in node.annotation("refusals")


def test_the_settings_of_an_emptied_config_map_no_longer_apply(node: Node) -> None:
    node.put_config("reboot-days: []")
    ask_for_a_reboot(node)
    agent = node.start("--forecast=off")
    wait_until(lambda: "outside-window" in node.annotation("refusals"))
    wait_until(lambda: has_followed(node))
    edit(node, "")
    wait_until((node.folder / "rebooted").exists, lambda: agent.log)


# ---- a start that finds bad settings ----


def test_the_agent_of_a_rebooted_node_uses_the_recorded_settings_if_the_config_map_is_invalid(
    node: Node,
) -> None:
    reboot_under(node, GOOD)
    node.put_config(BAD)
    agent = node.start("--forecast=off")
    wait_until(lambda: locks(node) == [] and node.annotation("phase") == "", lambda: agent.log)
    assert not is_cordoned(node)
    assert the_node(node)["metadata"]["labels"]["back"] == "yes"
    assert set(the_node(node)["metadata"].get("annotations", {})) == {keys.LAST_REBOOT, keys.HISTORY}
    assert "`concurrency` in ConfigMap careen/careen is 'none'" in agent.log
    assert 'careen_config_ok{node="n1"} 0.0' in agent.get("/metrics")
    assert not is_ready(agent)
    assert [each["involvedObject"]["kind"] for each in events(node, "SettingsUnusable")] == ["Node"]
    assert [each["involvedObject"]["kind"] for each in events(node, "BadSettings")] == ["ConfigMap"]


def test_a_node_makes_no_new_claim_until_the_config_map_is_repaired(node: Node) -> None:
    reboot_under(node, GOOD)
    node.put_config(BAD)
    agent = node.start("--forecast=off")
    wait_until(lambda: locks(node) == [] and node.annotation("phase") == "", lambda: agent.log)
    (node.folder / "rebooted").unlink()
    ask_for_a_reboot(node)
    wait_until(lambda: "settings-unusable" in node.annotation("refusals"), lambda: agent.log)
    assert not (node.folder / "rebooted").exists()
    edit(node, GOOD)
    wait_until((node.folder / "rebooted").exists, lambda: agent.log)
    assert 'careen_config_ok{node="n1"} 1.0' in agent.get("/metrics")
    assert is_ready(agent)


def test_an_agent_that_uses_recorded_settings_restarts_if_an_edit_requires_a_restart(node: Node) -> None:
    reboot_under(node, GOOD)
    node.put_config(BAD)
    agent = node.start("--forecast=off")
    agent.says("the agent keeps the present settings")  # it follows the ConfigMap
    edit(node, "reboot-sentinel: /var/run/other-sentinel")
    assert agent.ends() == 0
    assert "the agent restarts, because a change of reboot-sentinel needs a restart" in agent.log
    assert "Traceback" not in agent.log


def test_the_agent_of_a_rebooted_node_uses_the_recorded_settings_if_the_config_map_is_deleted(
    node: Node,
) -> None:
    reboot_under(node, GOOD)
    delete_config(node)
    agent = node.start("--forecast=off")
    wait_until(lambda: locks(node) == [] and node.annotation("phase") == "", lambda: agent.log)
    assert the_node(node)["metadata"]["labels"]["back"] == "yes"
    assert "ConfigMap careen/careen does not exist" in agent.log


def test_an_agent_with_a_claim_starts_if_no_config_map_ever_existed(node: Node) -> None:
    ask_for_a_reboot(node)
    first = node.start("--forecast=off")
    wait_until((node.folder / "rebooted").exists)
    first.process.kill()
    first.process.wait()
    agent = node.start("--forecast=off")
    wait_until(lambda: is_ready(agent))
    assert 'careen_config_ok{node="n1"} 1.0' in agent.get("/metrics")
    assert events(node, "SettingsUnusable") == []


def test_a_drain_is_undone_if_neither_recorded_nor_current_settings_are_usable(node: Node) -> None:
    """The Node lacks the annotation with the settings, as after a drain by an older release. The current settings are
    invalid, so the agent cannot know which gates apply to this drain."""
    blocking = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "finalizers": ["a.b/c"]},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }
    node.server.seed(blocking)
    node.put_config(GOOD)
    ask_for_a_reboot(node)
    first = node.start("--forecast=off")
    wait_until(lambda: node.annotation("phase") == "Draining", lambda: first.log)
    first.process.kill()
    first.process.wait()
    found = the_node(node)
    del found["metadata"]["annotations"][keys.SETTINGS]
    node.server.seed(found)
    node.put_config(BAD)
    agent = node.start("--forecast=off")
    wait_until(
        lambda: node.annotation("phase") == "Waiting" and not is_cordoned(node) and locks(node) == [], lambda: agent.log
    )
    assert not (node.folder / "rebooted").exists()


def test_a_rebooted_node_is_uncordoned_although_the_daemonset_for_the_lock_is_missing(node: Node) -> None:
    """The agent runs without --ds-name, so it looks for the lock on the DaemonSet careen/kured, which does not exist at
    first. The agent uncordons its node before this DaemonSet exists. The node becomes idle after a person has created
    the DaemonSet."""
    reboot_under(node, GOOD)
    node.place = ("--ds-namespace=careen",)
    agent = node.start("--forecast=off")
    wait_until(lambda: not is_cordoned(node), lambda: agent.log)
    assert "DaemonSet careen/kured does not exist, but it must carry the lock" in agent.log
    assert 'careen_config_ok{node="n1"} 0.0' in agent.get("/metrics")
    assert "Traceback" not in agent.log
    found = node.server.get("daemonsets", "careen", "careen")
    assert found is not None
    again = {
        key: value for key, value in found["metadata"].items() if key not in ("uid", "resourceVersion", "annotations")
    }
    node.server.seed({**found, "metadata": {**again, "name": "kured", "uid": "another"}})
    wait_until(lambda: node.annotation("phase") == "", lambda: agent.log)


# ---- the scheduler's configuration ----


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (
            lambda node: node.put_config("scheduler-config: configmap:scheduler.yaml"),
            ": ConfigMap careen/careen has no key `scheduler.yaml`: add the key",
        ),
        (
            lambda node: node.put_config("scheduler-config: /no/such/file.yaml"),
            ": the file /no/such/file.yaml does not exist",
        ),
    ],
)
def test_a_missing_scheduler_configuration_ends_the_start_with_code_2(
    node: Node, put: Callable[[Node], None], words: str
) -> None:
    put(node)
    agent = node.start("--config-map-may-name-files")
    assert agent.ends() == 2
    assert f"`scheduler-config` in ConfigMap careen/careen{words}" in agent.log
    assert "Traceback" not in agent.log


def test_a_scheduler_configuration_that_disappears_is_reported_on_the_node(node: Node) -> None:
    file = node.folder / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    agent = node.start(f"--scheduler-config={file}")
    agent.says("the host does not ask for a reboot")
    file.unlink()
    ask_for_a_reboot(node)
    wait_until(lambda: "forecast-unknown" in node.annotation("refusals"), lambda: agent.log)
    assert f"--scheduler-config: the file {file} does not exist" in node.annotation("refusals")
    assert "a turn failed with an exception" not in agent.log


# ---- a reboot that cannot work ----


def test_a_host_whose_self_test_fails_is_never_drained(node: Node) -> None:
    ask_for_a_reboot(node)
    agent = node.start("--forecast=off", "--reboot-command=/no/such/program --now")
    wait_until(lambda: "reboot-impossible" in node.annotation("refusals"), lambda: agent.log)
    assert "the host has no program /no/such/program" in node.annotation("reason")
    wait_until(lambda: bool(events(node, "RebootImpossible")))
    journal = [change.after.content for change in list(node.server.store.journal) if change.after is not None]
    assert not any(each.get("kind") == "Node" and each.get("spec", {}).get("unschedulable") for each in journal)
    assert not any(keys.LOCK_ANNOTATION in (each["metadata"].get("annotations") or {}) for each in journal)


# ---- keys that the admission policies do not allow ----


def test_a_setting_with_a_key_that_the_admission_policies_refuse_is_reported_at_once(node: Node) -> None:
    """The agent reports the key although this host needs no reboot."""
    found = node.server.get("daemonsets", "careen", "careen")
    assert found is not None
    annotations = {"admission.careen.dev/labels": "listed"}
    node.server.seed({**found, "metadata": {**found["metadata"], "annotations": annotations}})
    node.put_config("pre-reboot-node-labels: [listed=yes]")
    agent = node.start("--sleep=off", "--forecast=off")
    wait_until(lambda: has_followed(node))
    edit(node, "pre-reboot-node-labels: [listed=yes, other=yes]")
    agent.says(
        "--pre-reboot-node-labels needs `other`, but the annotation admission.careen.dev/labels does not list this key"
    )
    wait_until(lambda: bool(events(node, "KeysNotAllowed")))
    assert [each["involvedObject"]["kind"] for each in events(node, "KeysNotAllowed")] == ["DaemonSet"]
