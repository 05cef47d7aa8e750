"""Builds the workloads of tests with simulated nodes. Most values have defaults, so a test mentions only the values on
which its result depends."""

from __future__ import annotations

from typing import Any

from tests.cluster.harness.api import Object

SHOP = "shop"


def deployment(name: str, replicas: int, **pod: Any) -> Object:
    """Build a Deployment. The further arguments are the options of `_template` for its pods."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": SHOP},
        "spec": {"replicas": replicas, **_template(name, **pod)},
    }


def stateful_set(name: str, replicas: int, **pod: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": SHOP},
        "spec": {"replicas": replicas, "serviceName": name, **_template(name, **pod)},
    }


def daemon_set(name: str, **pod: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": SHOP},
        "spec": _template(name, tolerations=[{"operator": "Exists"}], **pod),
    }


def job(name: str, *, runs_for: str = "24h", backoff_limit: int = 6, **pod: Any) -> Object:
    """Build a Job with one pod, which completes after `runs_for`."""
    template = _template(name, restartPolicy="Never", **pod)["template"]
    template["metadata"]["annotations"]["tests/runs-for"] = runs_for
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": SHOP},
        "spec": {"backoffLimit": backoff_limit, "template": template},
    }


def cron_job(name: str, of: Object) -> Object:
    """Build a suspended CronJob. A test creates its Jobs, as `kubectl create job --from` does."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": SHOP},
        "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": of["spec"]}},
    }


def bare_pod(name: str, node: str, labels: dict[str, str] | None = None) -> Object:
    """Build a pod without a controller that is already bound to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SHOP, "labels": labels or {"app": name}},
        "spec": {**_containers("50m", "32Mi"), "nodeName": node},
    }


def budget(app: str, *, min_available: int | str | None = None, max_unavailable: int | str | None = None) -> Object:
    limit = {"minAvailable": min_available} if min_available is not None else {"maxUnavailable": max_unavailable}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": SHOP},
        "spec": {"selector": {"matchLabels": {"app": app}}, **limit},
    }


def zone_spread(app: str, max_skew: int = 1) -> dict[str, Any]:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": max_skew,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": app}},
            }
        ]
    }


def apart_from_its_like(app: str) -> dict[str, Any]:
    """Return the affinity that allows at most one pod of the application on each host."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def on_node(node: str) -> dict[str, Any]:
    """Return a node selector for this node. Unlike `nodeName`, a node selector lets the scheduler place the pods."""
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def path_of(item: Object) -> str:
    """Return the API path of the collection to which a manifest belongs."""
    group = "/api/v1" if item["apiVersion"] == "v1" else f"/apis/{item['apiVersion']}"
    plural = {"NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses"}.get(
        item["kind"], item["kind"].lower() + "s"
    )
    namespace = item["metadata"].get("namespace")
    return f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"


def _template(
    app: str,
    *,
    cpu: str = "100m",
    memory: str = "64Mi",
    stop_seconds: float | None = None,
    grace_seconds: int = 30,
    labels: dict[str, str] | None = None,
    never_ready: bool = False,
    **spec: Any,
) -> dict[str, Any]:
    annotations = {} if stop_seconds is None else {"tests/stop-after": f"{stop_seconds}s"}
    if never_ready:
        annotations["tests/never-ready"] = "its container crashes"
    return {
        "selector": {"matchLabels": {"app": app}},
        "template": {
            "metadata": {"labels": {"app": app, **(labels or {})}, "annotations": annotations},
            "spec": {**_containers(cpu, memory), "terminationGracePeriodSeconds": grace_seconds, **spec},
        },
    }


def _containers(cpu: str, memory: str) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    return {"containers": [{"name": "app", "image": "example.com/app:1", "resources": {"requests": requests}}]}
