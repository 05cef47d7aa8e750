"""Deletes dependents of deleted owners, and pods of deleted nodes. Sources: pkg/controller/garbagecollector and
pkg/controller/podgc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS, is_going
from drydock.server.kinds.resources import BY_KIND, RESOURCE_TYPES, resource_named
from drydock.server.verbs import DeleteOptions, Verbs

_NODES = resource_named("nodes")
_KINDS = tuple(
    r
    for r in RESOURCE_TYPES
    if r.plural
    in (
        "pods",
        "replicasets",
        "deployments",
        "statefulsets",
        "daemonsets",
        "replicationcontrollers",
        "jobs",
        "controllerrevisions",
        "nodes",
    )
)
_ACTOR = "system:garbage-collector"


def reconcile(verbs: Verbs) -> None:
    alive = {item.content["metadata"]["uid"] for resource in _KINDS for item in verbs.store.items(resource.storage)}
    nodes = {item.key[1] for item in verbs.store.items(_NODES.storage)}
    for resource in _KINDS:
        for item in verbs.store.items(resource.storage):
            owners = item.content["metadata"].get("ownerReferences") or ()
            if owners and not is_going(item.content) and all(_is_absent(o, alive) for o in owners):
                verbs.delete(resource, item.key[0], item.key[1], DeleteOptions(), actor=_ACTOR)
    for item in verbs.store.items(PODS.storage):
        if item.content["spec"].get("nodeName", "") not in {"", *nodes}:
            verbs.delete(PODS, item.key[0], item.key[1], DeleteOptions(grace_seconds=0), actor=_ACTOR)


def _is_absent(owner: Mapping[str, Any], alive: set[str]) -> bool:
    """An owner of a kind that this server does not have is not absent: the real collector leaves its dependents alone
    while discovery does not know the kind."""
    return owner["uid"] not in alive and (owner["apiVersion"], owner["kind"]) in BY_KIND


CONTROLLER = Controller(
    name="garbage-collector",
    watches=("replicasets", "deployments", "statefulsets", "daemonsets", "nodes", "pods"),
    reconcile=reconcile,
)
