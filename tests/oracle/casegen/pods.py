"""Generates placed and pending pods with all forms of requests, ports, volumes and priorities."""

from __future__ import annotations

from typing import Any

from tests.oracle.casegen import terms
from tests.oracle.casegen import vocabulary as word
from tests.oracle.casegen.draw import Draw
from tests.oracle.casegen.flavours import Flavour
from tests.oracle.casegen.nodes import IMAGES
from tests.oracle.casegen.volumes import Storage

PRIORITIES = (0, 0, 0, 10, 100, -5, 1000)


def pod(d: Draw, flavour: Flavour, storage: Storage, name: str, nodes: list[str], *, placed: bool) -> dict[str, Any]:
    """Returns a pod with the properties of the flavour. With `placed`, omits the fields that matter only for a pending
    pod."""
    namespace = d.often(word.NAMESPACES[:1], word.NAMESPACES[1:], 0.4) if not d.maybe(0.02) else "nowhere"
    labels = word.pod_labels(d)
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"pod-{namespace}-{name}",
        "creationTimestamp": f"2026-01-01T00:{d.randint(0, 59):02}:00Z",
    }
    if labels:
        metadata["labels"] = labels
    owners = _owner(d, namespace, labels)
    if owners:
        metadata["ownerReferences"] = owners
    spec = _containers(d, flavour, placed)
    if not d.maybe(0.04):
        spec["priority"] = d.choice(PRIORITIES)
    affinity = terms.pod_affinity(d, labels, flavour.pod_affinity)
    if not placed:
        affinity |= _demands(d, flavour, spec, labels, nodes)
    if affinity:
        spec["affinity"] = affinity
    volumes = storage.volumes_for(d, flavour, namespace, name, metadata["uid"], placed=placed)
    if volumes:
        spec["volumes"] = volumes
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def settle(d: Draw, manifest: dict[str, Any], node: str) -> dict[str, Any]:
    """Places a pod on a node. The pod is usually running, rarely completed or pending, and sometimes terminating."""
    manifest["spec"]["nodeName"] = node
    status = manifest["status"]
    status["phase"] = d.often(("Running",), ("Pending", "Succeeded", "Failed"), 0.05)
    if not d.maybe(0.01):  # a pod that has not started counts as started now
        status["startTime"] = f"2026-01-01T01:{d.randint(0, 14):02}:00Z"
    if d.maybe(0.06):
        manifest["metadata"] |= {"deletionTimestamp": "2026-01-01T02:00:00Z", "deletionGracePeriodSeconds": 30}
        if d.maybe(0.3):
            status["conditions"] = [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": d.choice(("PreemptionByScheduler", "EvictionByEvictionAPI")),
                    "lastTransitionTime": "2026-01-01T02:00:00Z",
                }
            ]
    return manifest


def filler(d: Draw, name: str, node: str, request: dict[str, str]) -> dict[str, Any]:
    """Returns a plain pod of low priority that makes a node full."""
    namespace = d.often(word.NAMESPACES[:1], word.NAMESPACES[1:], 0.4)
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"pod-{namespace}-{name}",
            "labels": word.pod_labels(d),
        },
        "spec": {
            "containers": [{"name": "c", "image": "x", "resources": {"requests": request}}],
            "priority": d.choice((-10, -5, 0, 0, 5, 50, 500)),
        },
        "status": {"phase": "Pending"},
    }
    return settle(d, manifest, node)


def _owner(d: Draw, namespace: str, labels: dict[str, str]) -> list[dict[str, Any]]:
    if "app" not in labels or not d.maybe(0.35):
        return []
    api, kind = d.choice(
        (
            ("apps/v1", "ReplicaSet"),
            ("apps/v1", "StatefulSet"),
            ("v1", "ReplicationController"),
            ("batch/v1", "Job"),
            ("apps/v1beta1", "StatefulSet"),
        )
    )
    app = labels["app"]
    return [
        {"apiVersion": api, "kind": kind, "name": f"own-{app}", "uid": f"{kind}-{namespace}-{app}", "controller": True}
    ]


def _resources(d: Draw, flavour: Flavour) -> dict[str, Any]:
    requests: dict[str, str] = {}
    if d.maybe(0.8):
        requests["cpu"] = word.cpu(d)
    if d.maybe(0.75):
        requests["memory"] = word.memory(d)
    if d.maybe(0.1):
        requests["ephemeral-storage"] = d.choice(word.STORAGE)
    if d.maybe(flavour.scalars):
        for name in d.some(word.SCALARS, 2):
            requests[name] = word.scalar_amount(d, name)
    if d.maybe(0.02):
        requests["unknown-name"] = "1"
    resources: dict[str, Any] = {"requests": requests} if requests else {}
    if requests and d.maybe(0.2):
        resources["limits"] = dict(requests)
    return resources


def _containers(d: Draw, flavour: Flavour, placed: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [_container(d, flavour, f"c{i}") for i in range(d.choice((1, 1, 1, 2, 3)))]}
    inits = []
    for i in range(d.choice((0, 0, 0, 1, 1, 2, 3))):
        init = _container(d, flavour, f"i{i}")
        if d.maybe(0.45):
            init["restartPolicy"] = "Always"
        inits.append(init)
    if inits:
        spec["initContainers"] = inits
    if d.maybe(flavour.ports):
        some = d.choice(spec["containers"] + [c for c in inits if d.maybe(0.5)])
        some["ports"] = [_port(d) for _ in range(d.choice((1, 1, 2)))]
    if d.maybe(0.08):
        spec["overhead"] = {"cpu": "100m", "memory": "64Mi"} | ({"ephemeral-storage": "1Gi"} if d.maybe(0.2) else {})
    if d.maybe(flavour.pod_level):
        spec["resources"] = {"requests": _pod_level(d)}
    if d.maybe(flavour.declared):
        if d.maybe(0.5):
            spec["containers"][0]["restartPolicyRules"] = [
                {
                    "action": d.choice(("RestartAllContainers", "Restart")),
                    "exitCodes": {"operator": "In", "values": [1]},
                }
            ]
        else:
            spec |= {"hostNetwork": d.maybe(0.8), "hostUsers": d.maybe(0.3)}
    return spec


def _pod_level(d: Draw) -> dict[str, str]:
    total: dict[str, str] = {}
    if d.maybe(0.8):
        total["cpu"] = d.choice(("4", "500m", "2", "0"))
    if d.maybe(0.7):
        total["memory"] = d.choice(("5Gi", "512Mi", "0.5G"))
    if d.maybe(0.15):
        total["hugepages-2Mi"] = "64Mi"
    return total


def _container(d: Draw, flavour: Flavour, name: str) -> dict[str, Any]:
    image = d.often(
        tuple(IMAGES),
        ("registry.example/rare:v9", "registry.example/plain", "mirror.example/web:v1", "localhost:5000/tool"),
        0.3,
    )
    return {"name": name, "image": image, "resources": _resources(d, flavour)}


def _port(d: Draw) -> dict[str, Any]:
    port: dict[str, Any] = {"containerPort": 8080}
    if d.maybe(0.9):
        port["hostPort"] = d.choice((8080, 9090))
    if d.maybe(0.8):
        port["protocol"] = d.choice(("TCP", "UDP", "SCTP"))
    if d.maybe(0.5):
        port["hostIP"] = d.choice(("0.0.0.0", "127.0.0.1", "10.0.0.1", "::", ""))
    return port


def _demands(
    d: Draw, flavour: Flavour, spec: dict[str, Any], labels: dict[str, str], nodes: list[str]
) -> dict[str, Any]:
    """Adds fields that only a pending pod needs. Returns the node affinity of the pod."""
    if d.maybe(0.12):
        spec["preemptionPolicy"] = d.choice(("Never", "Never", "PreemptLowerPriority"))
    if d.maybe(0.5):
        spec["tolerations"] = terms.tolerations(d)
    if d.maybe(flavour.node_affinity * 0.4):
        spec["nodeSelector"] = {d.choice(("pool", "disk", "gen")): d.choice(("a", "b", "ssd", "1"))}
    if d.maybe(flavour.gates * 0.5):
        spec["nodeName"] = d.choice(nodes)  # such a pod bypasses the scheduler; NodeName shows its verdict
    if d.maybe(flavour.gates):
        spec["schedulingGates"] = [{"name": gate} for gate in d.some(("example.com/quota", "example.com/hold"), 2)]
    if d.maybe(flavour.spread):
        spec["topologySpreadConstraints"] = terms.spread(d, labels)
    near = terms.node_affinity(d, nodes, flavour.node_affinity, flavour.node_affinity)
    return {"nodeAffinity": near} if near else {}


def resized(d: Draw, manifest: dict[str, Any]) -> None:
    """Gives a running pod the status of a resize that is in progress, refused or deferred."""
    spec, status = manifest["spec"], manifest["status"]
    statuses = []
    for field in ("containers", "initContainers"):
        seen = []
        for container in spec.get(field, []):
            if not d.maybe(0.8):
                continue
            actual = {
                key: d.choice((value, "1750m" if key == "cpu" else value))
                for key, value in container["resources"].get("requests", {}).items()
            }
            one = {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "resources": {"requests": actual} if d.maybe(0.85) else {},
            }
            if d.maybe(0.7):
                one["allocatedResources"] = dict(actual) | ({"memory": "3Gi"} if d.maybe(0.2) else {})
            seen.append(one)
        if seen:
            statuses.append((field, seen))
    for field, seen in statuses:
        status["containerStatuses" if field == "containers" else "initContainerStatuses"] = seen
    if d.maybe(0.6):
        status.setdefault("conditions", []).append(
            {
                "type": d.choice(("PodResizePending", "PodResizeInProgress")),
                "status": d.often(("True",), ("False",), 0.1),
                "reason": d.choice(("Infeasible", "Deferred", "")),
                "lastTransitionTime": "2026-01-01T01:30:00Z",
            }
        )
    if "resources" in spec and d.maybe(0.7):
        status["resources"] = {"requests": {"cpu": d.choice(("1", "5")), "memory": "6Gi"}}
        if d.maybe(0.6):
            status["allocatedResources"] = {"cpu": d.choice(("2", "4500m")), "memory": "5Gi"}
