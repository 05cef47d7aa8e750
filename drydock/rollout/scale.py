"""The scale subresource: a workload's replica count as an autoscaling/v1 Scale, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def scale_of(workload: Mapping[str, Any]) -> dict[str, Any]:
    """The Scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController."""
    metadata = {
        k: v
        for k, v in workload["metadata"].items()
        if k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    selector = (workload["spec"].get("selector") or {}).get("matchLabels") or {}
    status = {
        "replicas": workload.get("status", {}).get("replicas", 0),
        "selector": ",".join(f"{k}={v}" for k, v in sorted(selector.items())),
    }
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": workload["spec"].get("replicas", 1)},
        "status": status,
    }


def with_scale(workload: Mapping[str, Any], scale: Mapping[str, Any]) -> dict[str, Any]:
    """The workload with the Scale's replica count and, if given, its resourceVersion."""
    version = (scale.get("metadata") or {}).get("resourceVersion") or workload["metadata"].get("resourceVersion", "")
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    return {
        **workload,
        "metadata": {**workload["metadata"], "resourceVersion": version},
        "spec": {**workload["spec"], "replicas": replicas},
    }
