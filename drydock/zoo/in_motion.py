"""Deployments that change while nodes go down: an autoscaler that hides unready pods, and roll-outs, good and bad."""

from __future__ import annotations

import contextlib

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS, controller_uid, is_active
from drydock.server.api_errors import ApiError
from drydock.server.evictions import evict
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, Verbs
from drydock.zoo.citizen import (
    NAMESPACE,
    Citizen,
    Habitat,
    Stopwatch,
    budget,
    is_up,
    node_named,
    owner,
    pods_of_the_zoo,
    serves,
    template,
    workload,
    write_pod_status,
)

_DEPLOYMENTS, _SETS = resource_named("deployments"), resource_named("statefulsets")
_REPLICA_SETS = resource_named("replicasets")
_SCALE_SECONDS = 15.0
_STABILISATION_SECONDS = 300.0


def hpa(habitat: Habitat) -> Citizen:
    """A HorizontalPodAutoscaler. With fewer ready pods each has more load, so it raises the replicas, and lowers them
    after its stabilisation window."""
    base = 2 * len(habitat.nodes)
    watch = Stopwatch()

    def reconcile(verbs: Verbs) -> float | None:
        found = _deployment(verbs, "api")
        if found is None:
            return None
        wanted, ready = found["spec"]["replicas"], found.get("status", {}).get("readyReplicas", 0)
        short = watch.seconds(verbs, "short", holds=ready < wanted)
        calm = watch.seconds(verbs, "calm", holds=ready >= wanted > base)
        if short >= habitat.seconds(_SCALE_SECONDS) and wanted < 2 * base:
            _scale(verbs, "api", wanted + 1)
        elif calm >= habitat.seconds(_STABILISATION_SECONDS):
            _scale(verbs, "api", base)
        return habitat.resync if short >= 0.0 or calm >= 0.0 else None

    return Citizen(
        name="hpa",
        objects=(workload("Deployment", "api", base), _budget("api")),
        controllers=(Controller(name="horizontal-pod-autoscaler", watches=("deployments",), reconcile=reconcile),),
    )


def roll_out(habitat: Habitat, *, is_good: bool = True) -> Citizen:
    """A new image, once, when the first node goes down. The pods of a bad one never start."""
    image = "registry.example/site:2" if is_good else "registry.example/site:broken"
    began: list[str] = []

    def reconcile(verbs: Verbs) -> None:
        if began or all(is_up(verbs, node) for node in habitat.nodes):
            return
        began.append(image)
        verbs.change(_DEPLOYMENTS, NAMESPACE, "site", lambda old: _with_image(old, image), actor="pipeline")

    return Citizen(
        name="roll-out" if is_good else "bad-roll-out",
        objects=(workload("Deployment", "site", 2 * len(habitat.nodes)), _budget("site")),
        controllers=(Controller(name="pipeline", watches=("nodes",), reconcile=reconcile),),
    )


def keda(habitat: Habitat) -> Citizen:
    """Scales a Deployment to zero when the first node goes down, and up again when all nodes are back."""
    size = 2 * len(habitat.nodes)

    def reconcile(verbs: Verbs) -> None:
        found = _deployment(verbs, "consumer")
        if found is not None:
            wanted = size if all(is_up(verbs, node) for node in habitat.nodes) else 0
            if found["spec"]["replicas"] != wanted:
                _scale(verbs, "consumer", wanted)

    return Citizen(
        name="keda",
        objects=(workload("Deployment", "consumer", size), _budget("consumer")),
        controllers=(Controller(name="keda", watches=("nodes",), reconcile=reconcile),),
    )


def prometheus_operator(habitat: Habitat) -> Citizen:
    """Deletes its StatefulSet without the pods and creates it again, when the first node goes down: an immutable field
    has changed (prometheus-operator). The new StatefulSet adopts the pods."""
    manifest = workload(
        "StatefulSet", "metrics", len(habitat.nodes), serviceName="metrics", podManagementPolicy="Parallel"
    )
    began: list[str] = []

    def reconcile(verbs: Verbs) -> None:
        if not began and not all(is_up(verbs, node) for node in habitat.nodes):
            verbs.delete(_SETS, NAMESPACE, "metrics", DeleteOptions(orphan=True), actor="prometheus-operator")
            made = verbs.create(_SETS, NAMESPACE, manifest, actor="prometheus-operator").content
            began.append(made["metadata"]["uid"])
        for pod in pods_of_the_zoo(verbs, app="metrics") if began else ():
            if controller_uid(pod) != began[0]:
                verbs.change(PODS, NAMESPACE, pod["metadata"]["name"], adopted, actor="statefulset-controller")

    def adopted(old: Object) -> Object:
        reference = {**owner("apps/v1", "StatefulSet", "metrics"), "uid": began[0]}
        return {**old, "metadata": {**old["metadata"], "ownerReferences": [reference]}}

    return Citizen(
        name="prometheus-operator",
        objects=(manifest, budget("metrics", {"app": "metrics"}, maxUnavailable=1)),
        controllers=(Controller(name="prometheus-operator", watches=("nodes", "pods"), reconcile=reconcile),),
    )


def argo_rollouts(habitat: Habitat, *, is_good: bool = True) -> Citizen:
    """ReplicaSets whose controller is a Rollout, a kind of its own. When the first node goes down, a second ReplicaSet
    takes the place of the first. The pods of a bad one never start."""
    rollout = owner("argoproj.io/v1alpha1", "Rollout", "checkout")
    size = 2 * len(habitat.nodes)

    def revision(number: int, replicas: int, image: str = "") -> Object:
        name = f"checkout-{number}"
        pods = template("checkout", image=image)
        pods["metadata"]["labels"]["revision"] = str(number)
        metadata = {"name": name, "ownerReferences": [rollout]}
        selector = {"matchLabels": pods["metadata"]["labels"]}
        spec = {"replicas": replicas, "selector": selector, "template": pods}
        return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}

    def reconcile(verbs: Verbs) -> None:
        sets = {item.key[1]: item.content for item in verbs.store.items(_REPLICA_SETS.storage, NAMESPACE)}
        if "checkout-2" not in sets:
            if not all(is_up(verbs, node) for node in habitat.nodes):
                image = "" if is_good else "registry.example/checkout:broken"
                verbs.create(_REPLICA_SETS, NAMESPACE, revision(2, size, image), actor="argo-rollouts")
                _scale_set(verbs, "checkout-1", size - 1)
        elif sets["checkout-2"].get("status", {}).get("readyReplicas", 0) >= size - 1:
            _scale_set(verbs, "checkout-1", 0)

    return Citizen(
        name="argo-rollouts" if is_good else "bad-argo-rollouts",
        objects=(revision(1, size), _budget("checkout")),
        controllers=(Controller(name="argo-rollouts", watches=("nodes", "replicasets"), reconcile=reconcile),),
    )


def _scale_set(verbs: Verbs, name: str, replicas: int) -> None:
    found = verbs.store.get(_REPLICA_SETS.storage, (NAMESPACE, name))
    if found is not None and found.content["spec"]["replicas"] != replicas:
        verbs.change(
            _REPLICA_SETS,
            NAMESPACE,
            name,
            lambda old: {**old, "spec": {**old["spec"], "replicas": replicas}},
            actor="argo-rollouts",
        )


def descheduler(habitat: Habitat, *, seconds: float = 20.0) -> Citizen:
    """Evicts a pod of a Deployment again and again, as its budget permits (kubernetes-sigs/descheduler#424)."""
    looked = Stopwatch()

    def reconcile(verbs: Verbs) -> float | None:
        if looked.seconds(verbs, "look", holds=True) >= habitat.seconds(seconds):
            looked.seconds(verbs, "look", holds=False)
            running = [pod for pod in pods_of_the_zoo(verbs, app="till") if serves(pod)]
            if running:
                with contextlib.suppress(ApiError):
                    name = habitat.chance.choice(running)["metadata"]["name"]
                    evict(verbs, NAMESPACE, name, DeleteOptions(), actor="descheduler")
        return habitat.resync

    return Citizen(
        name="descheduler",
        objects=(
            workload("Deployment", "till", 2 * len(habitat.nodes)),
            budget("till", {"app": "till"}, maxUnavailable=1),
        ),
        controllers=(Controller(name="descheduler", watches=("nodes",), reconcile=reconcile),),
    )


def device_plugin(habitat: Habitat, *, seconds: float = 25.0) -> Citizen:
    """For some seconds after a boot the node's device plugin is missing, so the kubelet fails every pod that wants a
    device (UnexpectedAdmissionError). Their ReplicaSet creates others, and the failed pods stay."""
    boots: dict[str, str] = {}
    since: dict[str, float] = {}

    def reconcile(verbs: Verbs) -> float | None:
        now = verbs.store.clock()
        for name in habitat.nodes:
            node = node_named(verbs, name)
            if node is not None and is_up(verbs, name):
                boot = str(node["status"]["nodeInfo"]["bootID"])
                if boot != boots.setdefault(name, boot):
                    boots[name], since[name] = boot, now
        early = {name for name, at in since.items() if now - at < habitat.seconds(seconds)}
        for pod in pods_of_the_zoo(verbs, app="trainer"):
            if is_active(pod) and pod["spec"].get("nodeName") in early and not serves(pod):
                status = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
                write_pod_status(verbs, pod, status, actor="system:kubelet")
        return habitat.resync if early else None

    pods = template("trainer", ready_after=3)
    return Citizen(
        name="device-plugin",
        objects=(workload("Deployment", "trainer", 2 * len(habitat.nodes), pods), _budget("trainer")),
        controllers=(Controller(name="system:kubelet", watches=("nodes", "pods"), reconcile=reconcile),),
    )


def typha(habitat: Habitat) -> Citizen:
    """A Deployment of the network: one pod on each node, which tolerates everything. So the scheduler puts an evicted
    pod back onto the cordoned node."""
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "typha"}}}
    pods = template(
        "typha",
        tolerations=[{"operator": "Exists"}],
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
    )
    size = len(habitat.nodes)
    return Citizen(
        name="typha",
        objects=(workload("Deployment", "typha", size, pods), budget("typha", {"app": "typha"}, maxUnavailable=1)),
    )


def vault(habitat: Habitat) -> Citizen:
    """A StatefulSet. Its pods start sealed, so a story adds it to `broken`: nobody gives the keys."""
    size = len(habitat.nodes)
    return Citizen(
        name="vault",
        objects=(
            workload("StatefulSet", "vault", size, serviceName="vault", podManagementPolicy="Parallel"),
            budget("vault", {"app": "vault"}, maxUnavailable=1),
        ),
    )


def _budget(app: str) -> Object:
    return budget(app, {"app": app}, maxUnavailable="34%")


def _deployment(verbs: Verbs, name: str) -> Content | None:
    found = verbs.store.get(_DEPLOYMENTS.storage, (NAMESPACE, name))
    return None if found is None else found.content


def _scale(verbs: Verbs, name: str, replicas: int) -> None:
    verbs.change(
        _DEPLOYMENTS,
        NAMESPACE,
        name,
        lambda old: {**old, "spec": {**old["spec"], "replicas": replicas}},
        actor="horizontal-pod-autoscaler",
    )


def _with_image(old: Object, image: str) -> Object:
    pods = old["spec"]["template"]
    containers = [{**each, "image": image} for each in pods["spec"]["containers"]]
    changed = {**pods, "spec": {**pods["spec"], "containers": containers}}
    return {**old, "spec": {**old["spec"], "template": changed}}
