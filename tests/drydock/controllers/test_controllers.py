"""Tests the workload controllers on a store, without a clock or a server. In each pass, every controller runs once.
`World.settle` repeats the passes until no object changes."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drydock.controllers import (
    budgets,
    daemon_sets,
    deployments,
    garbage,
    node_lifecycle,
    replica_sets,
    stateful_sets,
)
from drydock.controllers.control_loop import Controller
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Store
from drydock.server.verbs import DeleteOptions, Verbs, with_condition

ALL = (deployments, replica_sets, stateful_sets, daemon_sets, budgets, node_lifecycle, garbage)


class World:
    """A store, and controllers that run when a test calls `settle`. The test acts as scheduler and kubelet."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.verbs = Verbs(Store(clock=lambda: 0.0), wall_clock=lambda: self.now, chance=random.Random(1))
        self.verbs.create(resource_named("namespaces"), "", {"metadata": {"name": "shop"}}, actor="admin")

    def create(self, plural: str, name: str, spec: dict[str, Any], **metadata: Any) -> None:
        namespace = "shop" if resource_named(plural).namespaced else ""
        self.verbs.create(
            resource_named(plural), namespace, {"metadata": {"name": name, **metadata}, "spec": spec}, actor="admin"
        )

    def settle(self, *, ready: bool = True) -> None:
        for _ in range(12):
            before = self.verbs.store.version
            for module in ALL:
                controller: Controller = module.CONTROLLER
                controller.reconcile(self.verbs)
            if ready:
                self.start_pods()
            if self.verbs.store.version == before:
                return
        raise AssertionError("after twelve passes, the controllers still change objects")

    def start_pods(self) -> None:
        for pod in self.pods():
            if pod["status"]["phase"] == "Pending":
                self.set_ready(pod, ready=True)

    def set_ready(self, pod: dict[str, Any], *, ready: bool) -> None:
        def edit(old: dict[str, Any]) -> dict[str, Any]:
            conditions = with_condition(
                old["status"].get("conditions") or [], "Ready", "True" if ready else "False", self.verbs.now()
            )
            return {**old, "status": {**old["status"], "phase": "Running", "conditions": conditions}}

        self.verbs.change(
            resource_named("pods"), "shop", pod["metadata"]["name"], edit, actor="kubelet", subresource="status"
        )

    def pods(self) -> list[dict[str, Any]]:
        return [dict(s.content) for s in self.verbs.store.items(("", "pods"), "shop")]

    def pod_names(self) -> list[str]:
        return [p["metadata"]["name"] for p in self.pods()]

    def status(self, plural: str, name: str) -> dict[str, Any]:
        resource = resource_named(plural)
        return dict(self.verbs.read(resource, "shop" if resource.namespaced else "", name).content["status"])

    def delete(self, plural: str, name: str) -> None:
        self.verbs.delete(
            resource_named(plural),
            "shop" if resource_named(plural).namespaced else "",
            name,
            DeleteOptions(),
            actor="admin",
        )


@pytest.fixture
def world() -> World:
    return World()


def template(app: str = "web", image: str = "web:1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def workload(replicas: int | None, app: str = "web", image: str = "web:1", **spec: Any) -> dict[str, Any]:
    counted = {} if replicas is None else {"replicas": replicas}
    return {**counted, "selector": {"matchLabels": {"app": app}}, "template": template(app, image), **spec}


# Deployments and ReplicaSets ------------------------------------------------------------------------------------


def test_a_deployment_creates_its_pods_through_a_replica_set_with_the_template_hash(world: World) -> None:
    world.create("deployments", "web", workload(3))
    world.settle()
    (owner,) = world.verbs.store.items(("apps", "replicasets"))
    assert len(world.pods()) == 3
    for pod in world.pods():
        assert pod["metadata"]["name"].startswith(owner.key[1] + "-")
        assert pod["metadata"]["labels"]["pod-template-hash"] == owner.key[1].removeprefix("web-")
        assert pod["metadata"]["ownerReferences"][0]["uid"] == owner.content["metadata"]["uid"]
    status = world.status("deployments", "web")
    assert (
        status["replicas"],
        status["readyReplicas"],
        status["availableReplicas"],
        status["unavailableReplicas"],
        status["observedGeneration"],
    ) == (3, 3, 3, 0, 1)


def test_a_deleted_pod_is_replaced_by_a_pod_with_another_name(world: World) -> None:
    world.create("deployments", "web", workload(2))
    world.settle()
    gone = world.pod_names()[0]
    world.delete("pods", gone)
    world.settle()
    assert len(world.pods()) == 2
    assert gone not in world.pod_names()


def test_a_terminating_pod_is_replaced_without_delay(world: World) -> None:
    add_node(world, "n1")
    world.create("deployments", "web", workload(1))
    world.settle()
    name = world.pod_names()[0]
    world.verbs.bind("shop", name, {"target": {"name": "n1"}}, actor="scheduler")
    world.delete("pods", name)
    world.settle()
    assert len(world.pods()) == 2
    assert world.status("replicasets", world.verbs.store.items(("apps", "replicasets"))[0].key[1])["replicas"] == 1


def test_scaling_down_deletes_unready_pods_first(world: World) -> None:
    world.create("deployments", "web", workload(3))
    world.settle()
    keep = world.pods()[1]
    for pod in world.pods():
        world.set_ready(pod, ready=pod["metadata"]["name"] == keep["metadata"]["name"])
    world.verbs.change(
        resource_named("deployments"),
        "shop",
        "web",
        lambda old: {**old, "spec": {**old["spec"], "replicas": 1}},
        actor="admin",
    )
    world.settle(ready=False)
    assert world.pod_names() == [keep["metadata"]["name"]]


def test_a_rolling_update_never_has_fewer_available_pods_than_allowed(world: World) -> None:
    world.create("deployments", "web", workload(4))
    world.settle()
    world.verbs.change(
        resource_named("deployments"),
        "shop",
        "web",
        lambda old: {**old, "spec": {**old["spec"], "template": template(image="web:2")}},
        actor="admin",
    )
    for _ in range(30):
        for module in (deployments, replica_sets):
            module.CONTROLLER.reconcile(world.verbs)
        ready = sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))
            for p in world.pods()
        )
        assert ready >= 3
        assert len(world.pods()) <= 5
        waiting = [p for p in world.pods() if p["status"]["phase"] == "Pending"]
        if waiting:
            world.set_ready(waiting[0], ready=True)
    assert [p["spec"]["containers"][0]["image"] for p in world.pods()] == ["web:2"] * 4


def test_the_recreate_strategy_waits_until_the_old_pods_are_gone(world: World) -> None:
    add_node(world, "n1")
    world.create("deployments", "web", workload(2, strategy={"type": "Recreate"}))
    world.settle()
    for name in world.pod_names():
        world.verbs.bind("shop", name, {"target": {"name": "n1"}}, actor="scheduler")
    world.verbs.change(
        resource_named("deployments"),
        "shop",
        "web",
        lambda old: {**old, "spec": {**old["spec"], "template": template(image="web:2")}},
        actor="admin",
    )
    world.settle()
    assert [p["spec"]["containers"][0]["image"] for p in world.pods()] == ["web:1"] * 2
    for name in world.pod_names():
        world.verbs.delete(resource_named("pods"), "shop", name, DeleteOptions(grace_seconds=0), actor="kubelet")
    world.settle()
    assert [p["spec"]["containers"][0]["image"] for p in world.pods()] == ["web:2"] * 2


def test_deleting_a_deployment_deletes_its_replica_sets_and_pods(world: World) -> None:
    world.create("deployments", "web", workload(2))
    world.settle()
    world.delete("deployments", "web")
    world.settle()
    assert (world.pods(), world.verbs.store.items(("apps", "replicasets"))) == ([], [])


def test_deleting_a_deployment_with_orphan_policy_keeps_its_replica_sets_and_pods(world: World) -> None:
    world.create("deployments", "web", workload(1))
    world.settle()
    world.verbs.delete(resource_named("deployments"), "shop", "web", DeleteOptions(orphan=True), actor="admin")
    world.settle()
    assert len(world.pods()) == 1


# StatefulSets ---------------------------------------------------------------------------------------------------


def test_a_stateful_set_starts_its_pods_in_order(world: World) -> None:
    world.create("statefulsets", "db", workload(3, "db", serviceName="db"))
    world.settle(ready=False)
    assert world.pod_names() == ["db-0"]
    world.start_pods()
    world.settle(ready=False)
    assert world.pod_names() == ["db-0", "db-1"]
    world.settle()
    assert world.pod_names() == ["db-0", "db-1", "db-2"]
    assert world.status("statefulsets", "db")["readyReplicas"] == 3


def test_a_parallel_stateful_set_starts_all_pods_at_once(world: World) -> None:
    world.create("statefulsets", "db", workload(3, "db", podManagementPolicy="Parallel"))
    world.settle(ready=False)
    assert world.pod_names() == ["db-0", "db-1", "db-2"]


def test_a_stateful_set_recreates_a_pod_after_the_old_pod_is_gone(world: World) -> None:
    add_node(world, "n1")
    world.create("statefulsets", "db", workload(2, "db"))
    world.settle()
    world.verbs.bind("shop", "db-0", {"target": {"name": "n1"}}, actor="scheduler")
    uid = world.pods()[0]["metadata"]["uid"]
    world.delete("pods", "db-0")
    world.settle()
    assert [p["metadata"]["uid"] for p in world.pods() if p["metadata"]["name"] == "db-0"] == [uid]
    world.verbs.delete(resource_named("pods"), "shop", "db-0", DeleteOptions(grace_seconds=0), actor="kubelet")
    world.settle()
    (again,) = (p for p in world.pods() if p["metadata"]["name"] == "db-0")
    assert again["metadata"]["uid"] != uid
    assert again["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"


def test_scaling_a_stateful_set_down_deletes_the_highest_ordinals(world: World) -> None:
    world.create("statefulsets", "db", workload(3, "db"))
    world.settle()
    world.verbs.change(
        resource_named("statefulsets"),
        "shop",
        "db",
        lambda old: {**old, "spec": {**old["spec"], "replicas": 1}},
        actor="admin",
    )
    world.settle()
    assert world.pod_names() == ["db-0"]


# DaemonSets -----------------------------------------------------------------------------------------------------


def add_node(
    world: World, name: str, *, taints: tuple[dict[str, str], ...] = (), ready: bool = True, **labels: str
) -> None:
    manifest = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints)},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }
    world.verbs.create(resource_named("nodes"), "", manifest, actor="kubelet")


def daemon_nodes(world: World) -> list[str]:
    terms = [
        p["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
        for p in world.pods()
    ]
    return sorted(t["matchFields"][0]["values"][0] for t in terms)


def test_a_daemonset_runs_on_every_eligible_node_including_cordoned_nodes(world: World) -> None:
    add_node(world, "n1")
    add_node(world, "n2", taints=({"key": "dedicated", "effect": "NoSchedule"},))
    add_node(world, "n3", taints=({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},))
    add_node(world, "n4", taints=({"key": "careen.dev/reboot", "effect": "PreferNoSchedule"},))
    world.create("daemonsets", "agent", workload(None, "agent"))
    world.settle(ready=False)
    assert daemon_nodes(world) == ["n1", "n3", "n4"]


def test_a_daemonset_runs_on_nodes_that_its_selector_and_tolerations_match(world: World) -> None:
    add_node(world, "n1", disk="ssd")
    add_node(world, "n2", taints=({"key": "dedicated", "effect": "NoSchedule", "value": "db"},), disk="ssd")
    add_node(world, "n3")
    spec = workload(None, "agent")
    spec["template"]["spec"].update(
        nodeSelector={"disk": "ssd"}, tolerations=[{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
    )
    world.create("daemonsets", "agent", spec)
    world.settle(ready=False)
    assert daemon_nodes(world) == ["n1", "n2"]


def test_a_daemonset_pod_is_recreated_on_its_node_and_deleted_with_its_node(world: World) -> None:
    add_node(world, "n1")
    world.create("daemonsets", "agent", workload(None, "agent"))
    world.settle()
    world.verbs.bind("shop", world.pod_names()[0], {"target": {"name": "n1"}}, actor="scheduler")
    world.settle()
    assert world.status("daemonsets", "agent")["numberReady"] == 1
    world.verbs.delete(
        resource_named("pods"), "shop", world.pod_names()[0], DeleteOptions(grace_seconds=0), actor="kubelet"
    )
    world.settle()
    assert daemon_nodes(world) == ["n1"]
    world.delete("nodes", "n1")
    world.settle()
    assert world.pods() == []


# Budgets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "unready", "expected"),
    [
        pytest.param({"minAvailable": 2}, 0, (2, 4, 2, 4), id="minAvailable as a number"),
        pytest.param(
            {"minAvailable": 2}, 1, (1, 3, 2, 4), id="minAvailable as a number, and one of four pods is unready"
        ),
        pytest.param({"minAvailable": "50%"}, 0, (2, 4, 2, 4), id="minAvailable of 50 %"),
        pytest.param(
            {"minAvailable": "60%"}, 0, (1, 4, 3, 4), id="minAvailable of 60 % of 4 pods, which is rounded up"
        ),
        pytest.param({"maxUnavailable": 1}, 0, (1, 4, 3, 4), id="maxUnavailable of one pod"),
        pytest.param(
            {"maxUnavailable": "30%"}, 0, (2, 4, 2, 4), id="maxUnavailable of 30 % of 4 pods, which is rounded up"
        ),
        pytest.param({"maxUnavailable": 1}, 2, (0, 2, 3, 4), id="maxUnavailable of one pod, and two pods are unready"),
        pytest.param({"minAvailable": 9}, 0, (0, 4, 9, 4), id="minAvailable greater than the number of pods"),
    ],
)
def test_the_status_of_a_disruption_budget_has_the_numbers_of_healthy_and_expected_pods(
    world: World, spec: dict[str, Any], unready: int, expected: tuple[int, int, int, int]
) -> None:
    world.create("deployments", "web", workload(4))
    world.settle()
    for pod in world.pods()[:unready]:
        world.set_ready(pod, ready=False)
    world.create("poddisruptionbudgets", "web", {**spec, "selector": {"matchLabels": {"app": "web"}}})
    world.settle(ready=False)
    status = world.status("poddisruptionbudgets", "web")
    assert (
        status["disruptionsAllowed"],
        status["currentHealthy"],
        status["desiredHealthy"],
        status["expectedPods"],
    ) == expected
    assert status["observedGeneration"] == 1


def test_a_disruption_budget_without_pods_allows_no_disruption(world: World) -> None:
    world.create("poddisruptionbudgets", "web", {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}})
    world.settle()
    assert world.status("poddisruptionbudgets", "web")["disruptionsAllowed"] == 0


def test_a_granted_eviction_counts_against_its_budget_for_two_minutes(world: World) -> None:
    world.create("deployments", "web", workload(2))
    world.create("poddisruptionbudgets", "web", {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}})
    world.settle()
    granted = {"disruptedPods": {world.pod_names()[0]: world.verbs.now()}}
    world.verbs.change(
        resource_named("poddisruptionbudgets"),
        "shop",
        "web",
        lambda old: {**old, "status": {**old["status"], **granted}},
        actor="apiserver",
        subresource="status",
    )
    world.settle()
    assert world.status("poddisruptionbudgets", "web")["disruptionsAllowed"] == 0
    world.now += timedelta(minutes=2, seconds=1)
    world.settle()
    assert world.status("poddisruptionbudgets", "web")["disruptionsAllowed"] == 1


# Nodes ----------------------------------------------------------------------------------------------------------


def taint_keys(world: World, name: str) -> list[str]:
    taints = world.verbs.read(resource_named("nodes"), "", name).content["spec"].get("taints") or []
    return [f"{t['key']}:{t['effect']}" for t in taints]


def test_cordoned_and_unready_nodes_get_taints_and_keep_other_taints(world: World) -> None:
    add_node(world, "n1", taints=({"key": "dedicated", "effect": "NoSchedule"},), ready=False)
    world.verbs.change(
        resource_named("nodes"),
        "",
        "n1",
        lambda old: {**old, "spec": {**old["spec"], "unschedulable": True}},
        actor="person",
    )
    world.settle()
    assert taint_keys(world, "n1") == [
        "dedicated:NoSchedule",
        "node.kubernetes.io/not-ready:NoSchedule",
        "node.kubernetes.io/not-ready:NoExecute",
        "node.kubernetes.io/unschedulable:NoSchedule",
    ]

    def back(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    world.verbs.change(resource_named("nodes"), "", "n1", back, actor="kubelet", subresource="status")
    world.verbs.change(
        resource_named("nodes"),
        "",
        "n1",
        lambda old: {**old, "spec": {**old["spec"], "unschedulable": False}},
        actor="person",
    )
    world.settle()
    assert taint_keys(world, "n1") == ["dedicated:NoSchedule"]


def test_pods_of_an_unready_node_become_unready(world: World) -> None:
    add_node(world, "n1", ready=False)
    world.create("deployments", "web", workload(1))
    world.settle()
    world.verbs.bind("shop", world.pod_names()[0], {"target": {"name": "n1"}}, actor="scheduler")
    world.settle(ready=False)
    assert world.status("deployments", "web")["readyReplicas"] == 0


def test_a_pod_whose_owner_has_an_unknown_kind_is_no_garbage() -> None:
    world = World()
    owners = [
        {"kind": "StrimziPodSet", "apiVersion": "core.strimzi.io/v1beta2"},
        {"kind": "Job", "apiVersion": "batch/v1"},
    ]
    for name, owner in zip(("broker", "orphan"), owners, strict=True):
        reference = {**owner, "name": "gone", "uid": "uid-gone", "controller": True}
        world.create("pods", name, {"containers": []}, ownerReferences=[reference])
    garbage.reconcile(world.verbs)
    assert [item.key[1] for item in world.verbs.store.items(resource_named("pods").storage)] == ["broker"]
