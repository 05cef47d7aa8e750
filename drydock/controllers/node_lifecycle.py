"""Taints unreachable and cordoned nodes, and marks the pods on unreachable nodes as not ready.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go. The real one also evicts the pods of a node that
stays unreachable for five minutes; a simulated host returns much earlier.
"""

from __future__ import annotations

from typing import Any

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS
from drydock.server.evictions import pod_is_ready
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import Verbs, with_condition

_NODES = resource_named("nodes")
_ACTOR = "system:node-controller"
_NOT_READY, _UNSCHEDULABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable"
# The taints that this controller owns; all others are foreign.
_OWN = {(_NOT_READY, "NoSchedule"), (_NOT_READY, "NoExecute"), (_UNSCHEDULABLE, "NoSchedule")}


def reconcile(verbs: Verbs) -> None:
    for stored in verbs.store.items(_NODES.storage):
        node = stored.content
        _keep_taints(verbs, node)
        if not is_ready(node):
            _mark_pods(verbs, node["metadata"]["name"])


def is_ready(node: Content) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _keep_taints(verbs: Verbs, node: Content) -> None:
    present = node["spec"].get("taints") or []
    wanted: list[tuple[str, str]] = []
    if not is_ready(node):
        wanted += [(_NOT_READY, "NoSchedule"), (_NOT_READY, "NoExecute")]
    if node["spec"].get("unschedulable"):
        wanted.append((_UNSCHEDULABLE, "NoSchedule"))
    kept = [t for t in present if (t["key"], t["effect"]) not in _OWN or (t["key"], t["effect"]) in wanted]
    there = {(t["key"], t["effect"]) for t in kept}
    added: list[dict[str, Any]] = [
        {"key": key, "effect": effect, "timeAdded": verbs.now()} for key, effect in wanted if (key, effect) not in there
    ]
    if added or len(kept) != len(present):
        verbs.change(
            _NODES,
            "",
            node["metadata"]["name"],
            lambda old: {**old, "spec": {**old["spec"], "taints": [*kept, *added]}},
            actor=_ACTOR,
        )


def _mark_pods(verbs: Verbs, node_name: str) -> None:
    for stored in verbs.store.items(PODS.storage):
        pod = stored.content
        if pod["spec"].get("nodeName") == node_name and pod_is_ready(pod):
            conditions = with_condition(
                pod["status"]["conditions"], "Ready", "False", verbs.now(), reason="NodeNotReady"
            )
            verbs.change(
                PODS,
                stored.key[0],
                stored.key[1],
                lambda old, c=conditions: {**old, "status": {**old["status"], "conditions": c}},  # type: ignore[misc]
                actor=_ACTOR,
                subresource="status",
            )


CONTROLLER = Controller(name="node-lifecycle", watches=("nodes", "pods"), reconcile=reconcile)
