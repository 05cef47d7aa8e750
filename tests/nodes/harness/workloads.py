"""Workloads for real kubelets: their one program is `pause`, which waits, ends when told to, and can take its time."""

from __future__ import annotations

from typing import Any

from tests.cluster.harness.api import Object
from tests.cluster.harness.workloads import deployment

_IMAGE = "example.com/app:1"


def web(replicas: int = 4, **pod: Any) -> Object:
    """Behind a budget in most stories. Its pods stop within a second."""
    return deployment("web", replicas, cpu="10m", memory="8Mi", **pod)


def container(*arguments: str, **more: Any) -> dict[str, Any]:
    """For `containers=[...]` of the builders; `arguments` are those of `pause`."""
    requests = {"cpu": "10m", "memory": "8Mi"}
    return {"name": "app", "image": _IMAGE, "args": list(arguments), "resources": {"requests": requests}, **more}


def before_stop(seconds: int) -> dict[str, Any]:
    """A container whose preStop hook takes so long."""
    return container(lifecycle={"preStop": {"exec": {"command": ["/pause", "sleep", str(seconds)]}}})
