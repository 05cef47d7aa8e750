"""Pods of controllers that the fleet's workloads do not play, and of nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.careen.chaos.fleet.workloads import NAMESPACE

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World


def owner(kind: str, name: str, api: str = "operator.example/v1") -> dict[str, Any]:
    """The reference to a controller."""
    return {"apiVersion": api, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def put_pod(
    world: World,
    name: str,
    node: str,
    of: dict[str, Any] | None,
    *,
    labels: dict[str, str] | None = None,
    is_ready: bool = True,
    is_bound: bool | None = None,
    **metadata: Any,
) -> None:
    """Add a running pod to this node. `is_bound` decides what its managedFields say about `spec.nodeName`. True: its
    creator set it, so no scheduler chose the node. False: a scheduler chose the node. None: it has no managedFields."""
    fields = {"f:containers": {}, **({"f:nodeName": {}} if is_bound else {})}
    record = {"manager": "creator", "operation": "Update", "fieldsV1": {"f:spec": fields}}
    world.server.put(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": labels or {"app": of["name"] if of else name},
                **({"ownerReferences": [of]} if of else {}),
                **({"managedFields": [record]} if is_bound is not None else {}),
                **metadata,
            },
            "spec": {
                "nodeName": node,
                "terminationGracePeriodSeconds": 5,
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}],
            },
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
            },
        },
        actor="operator",
    )
