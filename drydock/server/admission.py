"""Admission of pods: the priority, and the default tolerations for unreachable nodes.

Sources: kube-apiserver's Priority and DefaultTolerationSeconds admission plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drydock.server.api_errors import forbidden
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Store

_BUILT_IN_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_AWAY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admitted_pod(pod: Object, store: Store) -> Object:
    """Adds spec.priority and the two default NoExecute tolerations. Raises 403 if the priority class does not exist."""
    spec = {**pod["spec"], **_priority(pod, store)}
    tolerations = list(spec.get("tolerations") or [])
    for taint in _AWAY_TAINTS:
        if not any(t.get("key", "") in ("", taint) and t.get("effect", "") in ("", "NoExecute") for t in tolerations):
            tolerations.append({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    return {**pod, "spec": {**spec, "tolerations": tolerations}}


def _priority(pod: Object, store: Store) -> dict[str, Any]:
    classes = resource_named("priorityclasses")
    name = pod["spec"].get("priorityClassName") or ""
    if name in _BUILT_IN_PRIORITIES:
        return {"priority": _BUILT_IN_PRIORITIES[name], "preemptionPolicy": "PreemptLowerPriority"}
    if not name:
        defaults = [c.content for c in store.items(classes.storage) if c.content.get("globalDefault")]
        if not defaults:
            return {"priority": 0, "preemptionPolicy": pod["spec"].get("preemptionPolicy", "PreemptLowerPriority")}
        return {"priorityClassName": defaults[0]["metadata"]["name"], **_of_class(defaults[0])}
    found = store.get(classes.storage, ("", name))
    if found is None:
        raise forbidden(resource_named("pods"), pod["metadata"]["name"], f"no PriorityClass with name {name} was found")
    return _of_class(found.content)


def _of_class(priority_class: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "priority": priority_class["value"],
        "preemptionPolicy": priority_class.get("preemptionPolicy", "PreemptLowerPriority"),
    }
