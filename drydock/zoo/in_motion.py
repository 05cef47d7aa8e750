"""Deployments that change while nodes go down: an autoscaler that hides unready pods, and roll-outs, good and bad."""

from __future__ import annotations

from drydock.controllers.control_loop import Controller
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import Verbs
from drydock.zoo.citizen import NAMESPACE, Citizen, Habitat, Stopwatch, budget, is_up, template, workload

_DEPLOYMENTS = resource_named("deployments")
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
