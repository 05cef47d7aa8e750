"""What a citizen of the zoo consists of, and the objects from which citizens are made."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS, is_going
from drydock.server.evictions import pod_is_ready
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import BY_KIND, resource_named
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, EvictionWebhook, Verbs

NAMESPACE = "zoo"
NODES = resource_named("nodes")
BUDGETS = resource_named("poddisruptionbudgets")
ENDS_AFTER = "zoo.example/ends-after"
"""A pod's annotation: how many seconds its containers need to end. Only the tests' kubelets know it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habitat:
    """The cluster in which a citizen settles. `pace` multiplies the durations of the originals: a demo has less time
    than a story on virtual time."""

    nodes: tuple[str, ...]
    chance: random.Random
    pace: float = 1.0

    def seconds(self, original: float) -> float:
        return original * self.pace

    @property
    def resync(self) -> float:
        """After how many seconds a controller with deadlines of its own looks again."""
        return 2.0 * self.pace


Series = tuple[Mapping[str, str], float]
"""One sample of a metric: the labels, with `__name__`, and the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citizen:
    """An operator with the objects that people create for it. `series` are the metrics that it serves; `arrive` does
    once what `objects` cannot say."""

    name: str
    objects: tuple[Object, ...] = ()
    controllers: tuple[Controller, ...] = ()
    webhooks: tuple[EvictionWebhook, ...] = ()
    series: Callable[[Verbs], list[Series]] = field(default=lambda _verbs: [])
    arrive: Callable[[Verbs], None] = field(default=lambda _verbs: None)

    def settle(self, verbs: Verbs) -> None:
        """Creates the objects and registers the webhooks. The caller runs the controllers."""
        namespaces = resource_named("namespaces")
        if verbs.store.get(namespaces.storage, ("", NAMESPACE)) is None:
            verbs.create(namespaces, "", {"metadata": {"name": NAMESPACE}}, actor="admin")
        for manifest in self.objects:
            resource = BY_KIND[manifest["apiVersion"], manifest["kind"]]
            verbs.create(resource, NAMESPACE if resource.namespaced else "", manifest, actor="admin")
        self.arrive(verbs)
        verbs.eviction_webhooks.extend(self.webhooks)


class Stopwatch:
    """For how long something has been true, by the server's clock. What is no longer true starts again from zero."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def seconds(self, verbs: Verbs, what: str, *, holds: bool) -> float:
        if not holds:
            self._since.pop(what, None)
            return -1.0
        return (verbs.wall_clock() - self._since.setdefault(what, verbs.wall_clock())).total_seconds()


# Reading -----------------------------------------------------------------------------------------------------


def pods_of_the_zoo(verbs: Verbs, *, app: str = "") -> list[Content]:
    """All of them, or those of one application."""
    pods = [stored.content for stored in verbs.store.items(PODS.storage, NAMESPACE)]
    return [pod for pod in pods if not app or pod["metadata"]["labels"].get("app") == app]


def pod_named(verbs: Verbs, name: str) -> Content | None:
    found = verbs.store.get(PODS.storage, (NAMESPACE, name))
    return None if found is None else found.content


def node_named(verbs: Verbs, name: str) -> Content | None:
    found = verbs.store.get(NODES.storage, ("", name))
    return None if found is None else found.content


def is_cordoned(verbs: Verbs, node: str) -> bool:
    found = node_named(verbs, node)
    return found is not None and bool(found["spec"].get("unschedulable"))


def is_up(verbs: Verbs, node: str) -> bool:
    """Whether the Node exists and is ready."""
    found = node_named(verbs, node)
    conditions = (found or {}).get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def serves(pod: Content | None) -> bool:
    return pod is not None and not is_going(pod) and pod_is_ready(pod)


# Objects -----------------------------------------------------------------------------------------------------


def owner(api_version: str, kind: str, name: str) -> Object:
    """A reference to a custom resource. This server stores none: an operator here knows its own."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": f"uid-{kind.lower()}-{name}",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def template(app: str, *, ready_after: int = 1, image: str = "", **spec: Any) -> Object:
    """A pod template. The kubelets obey the delay of the readiness probe, and never start an image `…:broken`."""
    container: Object = {
        "name": "main",
        "image": image or f"registry.example/{app}:1",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "readinessProbe": {"initialDelaySeconds": ready_after},
    }
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": [container], **spec},
    }


def workload(kind: str, name: str, replicas: int, pods: Object | None = None, **spec: Any) -> Object:
    """A Deployment, StatefulSet or DaemonSet."""
    size = {} if kind == "DaemonSet" else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**size, "selector": {"matchLabels": {"app": name}}, "template": pods or template(name), **spec},
    }


def budget(name: str, labels: Mapping[str, str], *, controller: Object | None = None, **spec: Any) -> Object:
    metadata: Object = {"name": name}
    if controller is not None:
        metadata["ownerReferences"] = [controller]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": dict(labels)}, **spec},
    }


# Writing -----------------------------------------------------------------------------------------------------


def create_pod(
    verbs: Verbs,
    name: str,
    pods: Object,
    *,
    actor: str,
    controller: Object | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> None:
    """A pod that an operator creates itself. Without `nodeName` in `spec`, the scheduler places it."""
    metadata: Object = {"name": name, "labels": {**pods["metadata"]["labels"], **(labels or {})}}
    if controller is not None:
        metadata["ownerReferences"] = [controller]
    if annotations:
        metadata["annotations"] = dict(annotations)
    verbs.create(PODS, NAMESPACE, {"metadata": metadata, "spec": {**pods["spec"], **spec}}, actor=actor)


def keep_budget(verbs: Verbs, wanted: Object, *, stands: bool, actor: str) -> None:
    """Creates the budget if it must stand, and deletes it otherwise."""
    name = wanted["metadata"]["name"]
    there = verbs.store.get(BUDGETS.storage, (NAMESPACE, name)) is not None
    if stands and not there:
        verbs.create(BUDGETS, NAMESPACE, wanted, actor=actor)
    elif there and not stands:
        verbs.delete(BUDGETS, NAMESPACE, name, DeleteOptions(), actor=actor)


def change_budget(verbs: Verbs, name: str, *, actor: str, **spec: Any) -> None:
    """Sets fields of the budget's spec. Writes nothing if each has its value already."""
    found = verbs.store.get(BUDGETS.storage, (NAMESPACE, name))
    if found is not None and any(found.content["spec"].get(key) != value for key, value in spec.items()):
        verbs.change(BUDGETS, NAMESPACE, name, lambda old: {**old, "spec": {**old["spec"], **spec}}, actor=actor)


def change_pod(verbs: Verbs, pod: Content, part: str, values: Mapping[str, str], *, actor: str) -> None:
    """Sets labels or annotations (`part`) of the pod."""
    metadata = pod["metadata"]

    def edit(old: Object) -> Object:
        return {
            **old,
            "metadata": {**old["metadata"], part: {**(old["metadata"].get(part) or {}), **values}},
        }

    verbs.change(PODS, metadata["namespace"], metadata["name"], edit, actor=actor)


def write_pod_status(verbs: Verbs, pod: Content, status: Mapping[str, Any], *, actor: str) -> None:
    metadata = pod["metadata"]
    verbs.change(
        PODS,
        metadata["namespace"],
        metadata["name"],
        lambda old: {**old, "status": {**old["status"], **status}},
        actor=actor,
        subresource="status",
    )
