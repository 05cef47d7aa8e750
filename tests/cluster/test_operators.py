"""Tests operators whose budgets and webhooks open only after the cordon or after a real eviction, and volumes that are
detached late, where a real API server decides about evictions, owners and budgets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.harness.api import ApiError, Object
from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.machines.slow_webhook import SlowWebhook
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import SHOP, apart_from_its_like, bare_pod, budget, deployment, stateful_set

pytestmark = pytest.mark.cluster

PODS = f"/api/v1/namespaces/{SHOP}/pods"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
MACHINE = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "vm", "uid": "5a1e"}
VOLUME = "kubernetes.io/csi/csi.example^pv-late"


class Operators:
    """A thread that plays two operators: one moves the role of a database's primary away from a cordoned node, the
    other migrates the machine `vm` once its pod is marked."""

    def __init__(self, story: Story, asked: Callable[[], str]) -> None:
        self._story = story
        self._asked = asked
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operators", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.3):
            try:
                pods = self._story.admin.list(PODS)
                self._move_primary([pod for pod in pods if pod["metadata"]["labels"].get("app") == "acid"])
                self._migrate([pod for pod in pods if pod["metadata"]["labels"].get("app") == "vm"])
            except ApiError:
                continue

    def _move_primary(self, pods: list[Object]) -> None:
        primary = [pod for pod in pods if pod["metadata"]["labels"].get("role") == "primary"]
        fit = [pod for pod in pods if pod not in primary and is_ready(pod) and not self._is_cordoned(pod)]
        if fit and (not primary or self._is_cordoned(primary[0])):
            for pod in primary:
                self._label(pod, None)
            self._label(fit[0], "primary")

    def _label(self, pod: Object, role: str | None) -> None:
        self._story.admin.patch(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"labels": {"role": role}}})

    def _is_cordoned(self, pod: Object) -> bool:
        node = self._story.observer.node(pod["spec"].get("nodeName", ""))
        return node is not None and node.unschedulable

    def _migrate(self, pods: list[Object]) -> None:
        marked = [pod for pod in pods if pod["metadata"]["name"] == self._asked()]
        targets = [pod for pod in pods if pod not in marked]
        if marked and not targets:
            self._story.admin.create(PODS, a_machine("vm-2"))
        elif marked and is_ready(targets[0]):
            self._story.admin.delete(f"{PODS}/{marked[0]['metadata']['name']}")


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def a_machine(name: str, node: str = "") -> Object:
    pod = bare_pod(name, node, {"app": "vm"})
    pod["metadata"]["ownerReferences"] = [{**MACHINE, "controller": True}]
    if not node:
        del pod["spec"]["nodeName"]
    return pod


@pytest.fixture
def asked() -> list[str]:
    """The pods of the machine whose eviction was really requested."""
    return []


@pytest.fixture
def webhook(story: Story, asked: list[str], tmp_path: Path) -> Iterator[SlowWebhook]:
    def refuses(request: Object) -> str:
        name = str(request["name"])
        if not name.startswith("vm-") or name == "vm-2":
            return ""
        if not request.get("dryRun"):
            asked.append(name)
        return 'Eviction triggered evacuation of VMI "shop/vm"'

    webhook = SlowWebhook(story.admin, tmp_path / "webhook", 0.0, refuses=refuses)
    yield webhook
    webhook.close()


@pytest.fixture
def operators(story: Story, asked: list[str]) -> Iterator[Operators]:
    operators = Operators(story, lambda: asked[0] if asked else "")
    yield operators
    operators.close()


def put_etcd(story: Story, host: Host) -> None:
    """The mirror pod of a static pod, which nothing may evict."""
    pod = bare_pod(f"etcd-{host.name}", host.name, {"app": "etcd"})
    node = story.admin.get(f"/api/v1/nodes/{host.name}")
    owner = {"apiVersion": "v1", "kind": "Node", "name": host.name, "uid": node["metadata"]["uid"], "controller": True}
    pod["metadata"] |= {"annotations": {"kubernetes.io/config.mirror": "a1b2"}, "ownerReferences": [owner]}
    pod["spec"]["tolerations"] = [{"operator": "Exists"}]
    story.admin.create(PODS, pod)


def host_of_primary(story: Story, hosts: list[Host]) -> Host | None:
    places = [pod["spec"].get("nodeName") for pod in story.admin.list(PODS, labelSelector="role=primary")]
    return next((host for host in hosts if host.name in places), None)


def attach(story: Story, host: Host) -> None:
    source = {"persistentVolumeName": "pv-late"}
    made = {"attacher": "csi.example", "nodeName": host.name, "source": source}
    story.admin.create(
        ATTACHMENTS,
        {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "late"}, "spec": made},
    )
    report_volumes(story, host, [{"name": VOLUME, "devicePath": ""}])


def report_volumes(story: Story, host: Host, attached: list[Object]) -> None:
    story.admin.patch(f"/api/v1/nodes/{host.name}/status", {"status": {"volumesAttached": attached}})


def test_a_node_reboots_when_the_operators_have_let_its_pods_go_and_its_volume_is_detached(
    story: Story, webhook: SlowWebhook, operators: Operators, asked: list[str]
) -> None:
    hosts = story.nodes(3)
    primary = budget("acid", min_available=1)
    primary["spec"]["selector"] = {"matchLabels": {"role": "primary"}}
    story.workloads(stateful_set("acid", 2, **apart_from_its_like("acid")), deployment("web", 2), primary)
    first = story.wait_for("the database has a primary", lambda: host_of_primary(story, hosts))
    story.admin.create(PODS, a_machine("vm-1", first.name))
    for host in hosts:
        put_etcd(story, host)
    story.wait_for("the pods of the operators are ready", story.pods_are_ready, 60)
    attach(story, first)
    story.need_reboot([first])
    story.wait_for(
        "the drained node waits for its volume", lambda: "volumes are detached" in story.reason(first), seconds=90
    )
    assert asked, "the machine has left without a real eviction"
    assert not first.reboots
    story.stays("the node waits for its volume", lambda: not first.reboots, 3)
    story.admin.delete(f"{ATTACHMENTS}/late")
    report_volumes(story, first, [])
    story.finishes([first])
    assert {pod["metadata"]["name"] for pod in story.admin.list(PODS) if is_ready(pod)} >= {
        *(f"etcd-{host.name}" for host in hosts),
        "vm-2",
    }
    story.judge()


def test_a_budget_that_the_disruption_controller_cannot_compute_refuses_before_the_cordon(story: Story) -> None:
    first, second = story.nodes(2)
    story.workloads(deployment("web", 2), {**budget("vm", max_unavailable=1)})
    story.admin.create(PODS, a_machine("vm-1", first.name))
    story.wait_for("the machine runs", story.pods_are_ready, 60)
    story.need_reboot([first, second])
    story.finishes_one(second)
    story.wait_for("the node says why it waits", lambda: "shop/vm-1" in story.reason(first), 60)
    assert not first.reboots
    assert not any(seen.unschedulable for seen in story.observer.node_history(first.name))
    story.admin.delete(f"{PODS}/vm-1")
    story.finishes([first])
    story.judge()
