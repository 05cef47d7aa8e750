"""ReplicaSets: as many pods as `spec.replicas` says. The server generates their names. Source:
pkg/controller/replicaset."""

from __future__ import annotations

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import (
    PODS,
    count,
    is_active,
    is_going,
    pod_from_template,
    pods_of,
    write_status,
)
from drydock.server.evictions import pod_is_ready
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, Verbs

_SETS = resource_named("replicasets")
_ACTOR = "system:replicaset-controller"


def reconcile(verbs: Verbs) -> None:
    for stored in verbs.store.items(_SETS.storage):
        if not is_going(stored.content):
            _reconcile_one(verbs, stored.content)


def _reconcile_one(verbs: Verbs, owner: Content) -> None:
    namespace, wanted = owner["metadata"]["namespace"], owner["spec"]["replicas"]
    active = [p for p in pods_of(verbs, owner) if is_active(p)]
    for _ in range(wanted - len(active)):
        verbs.create(PODS, namespace, pod_from_template(owner, owner["spec"]["template"]), actor=_ACTOR)
    for pod in _first_to_go(active)[: max(0, len(active) - wanted)]:
        verbs.delete(PODS, namespace, pod["metadata"]["name"], DeleteOptions(), actor=_ACTOR)
    ready = count(active, pod_is_ready)
    status = {
        "replicas": len(active),
        "fullyLabeledReplicas": len(active),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": owner["metadata"]["generation"],
    }
    write_status(verbs, "replicasets", owner, status, _ACTOR)


def _first_to_go(pods: list[Content]) -> list[Content]:
    """Unready pods first, then the youngest (ActivePodsWithRanks in controller_utils.go)."""
    youngest_first = sorted(
        pods, key=lambda p: (p["metadata"]["creationTimestamp"], p["metadata"]["name"]), reverse=True
    )
    return sorted(
        youngest_first,
        key=lambda p: (bool(p["spec"].get("nodeName")), p["status"].get("phase") == "Running", pod_is_ready(p)),
    )


CONTROLLER = Controller(name="replicaset", watches=("replicasets", "pods"), reconcile=reconcile)
