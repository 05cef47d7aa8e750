"""The tables that `kubectl get` prints: the server makes columns and cells, as in a real cluster.

Source of columns and words: kubernetes `pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drydock.server.kinds.resources import ResourceType

Content = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A heading and the function for the cells. `wide` columns appear only with `-o wide`."""

    name: str
    cell: Callable[[Content, datetime], Any]
    wide: bool = False


def as_table(
    resource: ResourceType,
    contents: Iterable[Content],
    version: int,
    now: datetime,
    *,
    list_metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A meta.k8s.io/v1 Table. Rows carry the object's metadata, where kubectl reads names and labels."""
    columns = _COLUMNS.get(resource.storage, _PLAIN)
    definitions = [
        {
            "name": c.name,
            "type": "string",
            "format": "name" if c.name == "Name" else "",
            "description": c.name,
            "priority": 1 if c.wide else 0,
        }
        for c in columns
    ]
    rows = [
        {
            "cells": [c.cell(content, now) for c in columns],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": content["metadata"],
            },
        }
        for content in contents
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": str(version), **(list_metadata or {})},
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _at(path: str, otherwise: Any = "<none>") -> Callable[[Content, datetime], Any]:
    def cell(content: Content, _now: datetime) -> Any:
        here: Any = content
        for step in path.split("."):
            here = here.get(step) if isinstance(here, Mapping) else None
        return otherwise if here in (None, "") else here

    return cell


def _age(content: Content, now: datetime) -> str:
    created = content["metadata"].get("creationTimestamp")
    if not created:
        return "<unknown>"
    return human_duration((now - datetime.fromisoformat(created)).total_seconds())


def human_duration(seconds: float) -> str:
    """Like HumanDuration of apimachinery's `util/duration`: `45s`, `3m12s`, `5h`, `4d3h`."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    return f"{days}d{hours % 24}h" if days < 8 and hours % 24 else f"{days}d"


def _node_status(content: Content, _now: datetime) -> str:
    conditions = content.get("status", {}).get("conditions") or []
    ready = next((c["status"] for c in conditions if c.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"]
    if content.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(content: Content, _now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = sorted(k.removeprefix(prefix) for k in content["metadata"].get("labels") or {} if k.startswith(prefix))
    return ",".join(roles) or "<none>"


def _node_address(content: Content, _now: datetime) -> str:
    addresses = content.get("status", {}).get("addresses") or []
    return next((a["address"] for a in addresses if a.get("type") == "InternalIP"), "<none>")


def _pod_ready(content: Content, _now: datetime) -> str:
    total = len(content.get("spec", {}).get("containers") or [])
    ready = sum(1 for c in content.get("status", {}).get("containerStatuses") or [] if c.get("ready"))
    return f"{ready}/{total}"


def _pod_status(content: Content, _now: datetime) -> str:
    if "deletionTimestamp" in content["metadata"]:
        return "Terminating"
    status = content.get("status", {})
    return str(status.get("reason") or status.get("phase") or "Unknown")


def _pod_restarts(content: Content, _now: datetime) -> str:
    return str(sum(c.get("restartCount", 0) for c in content.get("status", {}).get("containerStatuses") or []))


def _replicas_ready(content: Content, _now: datetime) -> str:
    return f"{content.get('status', {}).get('readyReplicas', 0)}/{content['spec'].get('replicas', 1)}"


def _selector(content: Content, _now: datetime) -> str:
    selector = content.get("spec", {}).get("nodeSelector") or {}
    return ",".join(f"{k}={v}" for k, v in sorted(selector.items())) or "<none>"


def _data_size(content: Content, _now: datetime) -> int:
    return len(content.get("data") or {}) + len(content.get("binaryData") or {})


def _event_object(content: Content, _now: datetime) -> str:
    regarding = content.get("involvedObject") or {}
    return f"{str(regarding.get('kind', '')).lower()}/{regarding.get('name', '')}"


def _event_age(content: Content, now: datetime) -> str:
    seen = content.get("lastTimestamp") or content.get("eventTime")
    return _age(content, now) if not seen else human_duration((now - datetime.fromisoformat(seen)).total_seconds())


_NAME = Column(name="Name", cell=_at("metadata.name"))
_AGE = Column(name="Age", cell=_age)
_PLAIN = (_NAME, _AGE)


def _count(name: str, path: str) -> Column:
    return Column(name=name, cell=_at(path, 0))


_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "nodes"): (
        _NAME,
        Column(name="Status", cell=_node_status),
        Column(name="Roles", cell=_node_roles),
        _AGE,
        Column(name="Version", cell=_at("status.nodeInfo.kubeletVersion", "")),
        Column(name="Internal-IP", cell=_node_address, wide=True),
        Column(name="External-IP", cell=lambda _c, _n: "<none>", wide=True),
        Column(name="OS-Image", cell=_at("status.nodeInfo.osImage", "<unknown>"), wide=True),
        Column(name="Kernel-Version", cell=_at("status.nodeInfo.kernelVersion", "<unknown>"), wide=True),
        Column(name="Container-Runtime", cell=_at("status.nodeInfo.containerRuntimeVersion", "<unknown>"), wide=True),
    ),
    ("", "pods"): (
        _NAME,
        Column(name="Ready", cell=_pod_ready),
        Column(name="Status", cell=_pod_status),
        Column(name="Restarts", cell=_pod_restarts),
        _AGE,
        Column(name="IP", cell=_at("status.podIP"), wide=True),
        Column(name="Node", cell=_at("spec.nodeName"), wide=True),
        Column(name="Nominated Node", cell=_at("status.nominatedNodeName"), wide=True),
        Column(name="Readiness Gates", cell=lambda _c, _n: "<none>", wide=True),
    ),
    ("apps", "deployments"): (
        _NAME,
        Column(name="Ready", cell=_replicas_ready),
        _count("Up-to-date", "status.updatedReplicas"),
        _count("Available", "status.availableReplicas"),
        _AGE,
    ),
    ("apps", "replicasets"): (
        _NAME,
        _count("Desired", "spec.replicas"),
        _count("Current", "status.replicas"),
        _count("Ready", "status.readyReplicas"),
        _AGE,
    ),
    ("apps", "statefulsets"): (_NAME, Column(name="Ready", cell=_replicas_ready), _AGE),
    ("apps", "daemonsets"): (
        _NAME,
        _count("Desired", "status.desiredNumberScheduled"),
        _count("Current", "status.currentNumberScheduled"),
        _count("Ready", "status.numberReady"),
        _count("Up-to-date", "status.updatedNumberScheduled"),
        _count("Available", "status.numberAvailable"),
        Column(name="Node Selector", cell=_selector),
        _AGE,
    ),
    ("policy", "poddisruptionbudgets"): (
        _NAME,
        Column(name="Min Available", cell=_at("spec.minAvailable", "N/A")),
        Column(name="Max Unavailable", cell=_at("spec.maxUnavailable", "N/A")),
        _count("Allowed Disruptions", "status.disruptionsAllowed"),
        _AGE,
    ),
    ("", "configmaps"): (_NAME, Column(name="Data", cell=_data_size), _AGE),
    ("", "namespaces"): (_NAME, Column(name="Status", cell=_at("status.phase")), _AGE),
    ("", "services"): (
        _NAME,
        Column(name="Type", cell=_at("spec.type")),
        Column(name="Cluster-IP", cell=_at("spec.clusterIP")),
        _AGE,
    ),
    ("", "events"): (
        Column(name="Last Seen", cell=_event_age),
        Column(name="Type", cell=_at("type", "")),
        Column(name="Reason", cell=_at("reason", "")),
        Column(name="Object", cell=_event_object),
        Column(name="Message", cell=_at("message", "")),
    ),
}
