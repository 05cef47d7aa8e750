"""DaemonSets: one pod on every eligible node, placed by the scheduler. Source: pkg/controller/daemon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import (
    OTHER_CONTROLLER,
    PODS,
    count,
    is_active,
    is_going,
    pod_from_template,
    pods_of,
    template_hash,
    write_status,
)
from drydock.server.evictions import pod_is_ready
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, Verbs

_SETS = resource_named("daemonsets")
_NODES = resource_named("nodes")
_ACTOR = "system:daemonset-controller"

# daemon/util/daemonset_util.go AddOrUpdateDaemonPodTolerations.
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


def reconcile(verbs: Verbs) -> None:
    for stored in verbs.store.items(_SETS.storage):
        has_another = OTHER_CONTROLLER in (stored.content["metadata"].get("annotations") or {})
        if not is_going(stored.content) and not has_another:
            _reconcile_one(verbs, stored.content)


def _reconcile_one(verbs: Verbs, owner: Content) -> None:
    namespace = owner["metadata"]["namespace"]
    template = _daemon_template(owner)
    revision = template_hash(owner["spec"]["template"])
    by_node: dict[str, list[Content]] = {}
    for pod in pods_of(verbs, owner):
        by_node.setdefault(_node_of(pod), []).append(pod)
    eligible = [
        n.content["metadata"]["name"]
        for n in verbs.store.items(_NODES.storage)
        if _wants_daemon(n.content, template["spec"])
    ]
    for node in eligible:
        pods = by_node.get(node, [])
        for pod in pods:
            if not is_active(pod) and not is_going(pod):
                verbs.delete(PODS, namespace, pod["metadata"]["name"], DeleteOptions(), actor=_ACTOR)
        if not pods:
            made = pod_from_template(owner, template, labels={"controller-revision-hash": revision})
            verbs.create(PODS, namespace, {**made, "spec": _pinned(made["spec"], node)}, actor=_ACTOR)
    for node, pods in by_node.items():
        # Of two pods on one node the older stays. A node that is no longer eligible loses its pod.
        for pod in sorted((p for p in pods if not is_going(p)), key=lambda p: p["metadata"]["creationTimestamp"])[
            1 if node in eligible else 0 :
        ]:
            verbs.delete(PODS, namespace, pod["metadata"]["name"], DeleteOptions(), actor=_ACTOR)
    _write_status(verbs, owner, eligible)


def _daemon_template(owner: Content) -> Object:
    template = dict(owner["spec"]["template"])
    tolerations = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]
    template["spec"] = {**template["spec"], "tolerations": [*(template["spec"].get("tolerations") or []), *tolerations]}
    return template


def _wants_daemon(node: Content, spec: Mapping[str, Any]) -> bool:
    """Whether the node's labels and permanent taints allow a pod with this spec (NodeShouldRunDaemonPod)."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    taints = [t for t in node["spec"].get("taints") or () if t["effect"] in ("NoSchedule", "NoExecute")]
    return not any(_repels(t, spec["tolerations"]) for t in taints)


def _repels(taint: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    return not any(
        t.get("effect", "") in ("", taint["effect"])
        and t.get("key", "") in ("", taint["key"])
        and (t.get("operator") == "Exists" or t.get("value", "") == taint.get("value", ""))
        for t in tolerations
    )


def _pinned(spec: Mapping[str, Any], node: str) -> Object:
    """Pins the pod by affinity instead of nodeName: since 1.12 the scheduler places DaemonSet pods."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {
        **(spec.get("affinity") or {}),
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
    }
    return {**spec, "affinity": affinity}


def _node_of(pod: Content) -> str:
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    return str(terms[0]["matchFields"][0]["values"][0])


def _write_status(verbs: Verbs, owner: Content, eligible: list[str]) -> None:
    placed = [p for p in pods_of(verbs, owner) if is_active(p) and p["spec"].get("nodeName") in eligible]
    ready = count(placed, pod_is_ready)
    status = {
        "desiredNumberScheduled": len(eligible),
        "currentNumberScheduled": len(placed),
        "numberReady": ready,
        "numberAvailable": ready,
        "updatedNumberScheduled": len(placed),
        "numberUnavailable": len(eligible) - ready,
        "numberMisscheduled": 0,
        "observedGeneration": owner["metadata"]["generation"],
    }
    write_status(verbs, "daemonsets", owner, status, _ACTOR)


CONTROLLER = Controller(name="daemonset", watches=("daemonsets", "pods", "nodes"), reconcile=reconcile)
