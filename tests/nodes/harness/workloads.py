"""Builds workloads for real kubelets. Their only program is `pause`, which waits, ends on request, and can be slow to
end.
"""

from __future__ import annotations

from typing import Any

from tests.cluster.harness.api import Object
from tests.cluster.harness.workloads import deployment

_IMAGE = "example.com/app:1"


def web(replicas: int = 4, **pod: Any) -> Object:
    """Build the Deployment `web`, which most tests protect by a disruption budget. Its pods stop within a second."""
    return deployment("web", replicas, cpu="10m", memory="8Mi", **pod)


def container(*arguments: str, **more: Any) -> dict[str, Any]:
    """Build a container that runs the program `pause`, for the parameter `containers` of a workload. `arguments` are
    the command-line arguments of the program. For example, with `"8"` the program ends eight seconds after SIGTERM.
    """
    requests = {"cpu": "10m", "memory": "8Mi"}
    return {"name": "app", "image": _IMAGE, "args": list(arguments), "resources": {"requests": requests}, **more}


def before_stop(seconds: int) -> dict[str, Any]:
    """Build a container whose preStop hook takes this many seconds."""
    return container(lifecycle={"preStop": {"exec": {"command": ["/pause", "sleep", str(seconds)]}}})
