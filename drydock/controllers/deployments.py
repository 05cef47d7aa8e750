"""Deployments: one ReplicaSet per template, updated within maxSurge and maxUnavailable. Source:
pkg/controller/deployment."""

from __future__ import annotations

import math
from functools import partial

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import (
    controller_uid,
    is_going,
    owner_reference,
    pods_of,
    template_hash,
    write_status,
)
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import Verbs, with_condition

_DEPLOYMENTS = resource_named("deployments")
_SETS = resource_named("replicasets")
_HASH = "pod-template-hash"
_ACTOR = "system:deployment-controller"


def reconcile(verbs: Verbs) -> None:
    for stored in verbs.store.items(_DEPLOYMENTS.storage):
        if not is_going(stored.content):
            _reconcile_one(verbs, stored.content)


def _reconcile_one(verbs: Verbs, deployment: Content) -> None:
    namespace, wanted = deployment["metadata"]["namespace"], deployment["spec"]["replicas"]
    owned = [
        s.content
        for s in verbs.store.items(_SETS.storage, namespace)
        if controller_uid(s.content) == deployment["metadata"]["uid"]
    ]
    current_hash = template_hash(deployment["spec"]["template"])
    current = next((s for s in owned if s["metadata"]["labels"].get(_HASH) == current_hash), None)
    old = [s for s in owned if s is not current]
    if current is None:
        current = verbs.create(
            _SETS, namespace, _set_for(deployment, current_hash, 0 if old else wanted), actor=_ACTOR
        ).content
    old_pods_stand = any(pods_of(verbs, s) for s in old)
    for scaled, replicas in _next_sizes(deployment, current, old, old_pods_stand=old_pods_stand):
        if scaled["spec"]["replicas"] != replicas:
            verbs.change(
                _SETS,
                namespace,
                scaled["metadata"]["name"],
                partial(_with_replicas, replicas),
                actor=_ACTOR,
            )
    _write_status(verbs, deployment, current, old)


def _with_replicas(replicas: int, obj: Object) -> Object:
    return {**obj, "spec": {**obj["spec"], "replicas": replicas}}


def _set_for(deployment: Content, hashed: str, replicas: int) -> Object:
    spec, template = deployment["spec"], deployment["spec"]["template"]
    labels = {**(template["metadata"].get("labels") or {}), _HASH: hashed}
    selector = {**spec["selector"], "matchLabels": {**(spec["selector"].get("matchLabels") or {}), _HASH: hashed}}
    return {
        "metadata": {
            "name": f"{deployment['metadata']['name']}-{hashed}",
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def _next_sizes(
    deployment: Content, current: Content, old: list[Content], *, old_pods_stand: bool
) -> list[tuple[Content, int]]:
    """The next size of each ReplicaSet: the new one grows as far as maxSurge allows, the old ones shrink as far as
    maxUnavailable allows."""
    wanted = deployment["spec"]["replicas"]
    if deployment["spec"]["strategy"]["type"] == "Recreate":
        # A terminating pod counts too: two versions must never run side by side.
        return [*((s, 0) for s in old), (current, 0 if old_pods_stand else wanted)]
    if not any(s["spec"]["replicas"] for s in old):
        return [(current, wanted)]
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    surge = _share(rolling.get("maxSurge", "25%"), wanted, upwards=True)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), wanted, upwards=False)
    if surge == unavailable == 0:
        unavailable = 1  # ResolveFenceposts in deployment_util.go: otherwise the roll-out could never proceed
    sizes: list[tuple[Content, int]] = []
    room = wanted + surge - sum(s["spec"]["replicas"] for s in [current, *old])
    sizes.append((current, min(wanted, current["spec"]["replicas"] + max(0, room))))
    spare = sum(s["status"].get("availableReplicas", 0) for s in [current, *old]) - (wanted - unavailable)
    for each in old:
        not_available = each["spec"]["replicas"] - each["status"].get("availableReplicas", 0)
        step = max(0, min(each["spec"]["replicas"], max(not_available, 0) + max(0, spare)))
        spare -= max(0, step - max(not_available, 0))
        sizes.append((each, each["spec"]["replicas"] - step))
    return sizes


def _share(amount: int | str, of: int, *, upwards: bool) -> int:
    """An IntOrString as a number of pods. Percentages are rounded up for maxSurge and down for maxUnavailable."""
    if isinstance(amount, int):
        return amount
    exact = of * float(amount.rstrip("%")) / 100
    return math.ceil(exact) if upwards else math.floor(exact)


def _write_status(verbs: Verbs, deployment: Content, current: Content, old: list[Content]) -> None:
    def total(field: str) -> int:
        return sum(int(s["status"].get(field, 0)) for s in [current, *old])

    wanted, available = deployment["spec"]["replicas"], total("availableReplicas")
    unavailable = _share(
        (deployment["spec"]["strategy"].get("rollingUpdate") or {}).get("maxUnavailable", "25%"), wanted, upwards=False
    )
    enough = available >= wanted - unavailable
    conditions = with_condition(
        (deployment.get("status") or {}).get("conditions") or [],
        "Available",
        "True" if enough else "False",
        verbs.now(),
        reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
    )
    conditions = with_condition(conditions, "Progressing", "True", verbs.now(), reason="NewReplicaSetAvailable")
    status = {
        "replicas": total("replicas"),
        "updatedReplicas": int(current["status"].get("replicas", 0)),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted - available),
        "observedGeneration": deployment["metadata"]["generation"],
        "conditions": conditions,
    }
    write_status(verbs, "deployments", deployment, status, _ACTOR)


CONTROLLER = Controller(name="deployment", watches=("deployments", "replicasets", "pods"), reconcile=reconcile)
