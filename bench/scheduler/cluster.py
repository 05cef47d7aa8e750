"""A cluster from a seed, as an API server would list it: pages of nodes, pods, services and replica sets. Also pods to
place.

Four kinds of application, equally many of each: topology spread over zones and hosts, anti-affinity to itself,
preferred affinity to another one, no rule. The objects also have the fields that a load skips, such as managed fields,
conditions and the service account's volumes: skipping them is part of the measured time.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PODS_PER_NODE = 30
REPLICAS = 100
NAMESPACES = 20
REVISION = "5d4f"  # that of every running pod
PAGE = 500
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
KINDS = ("spread", "anti-affinity", "preferred-affinity", "plain")
LISTS = {
    "Node": "0-nodes",
    "Namespace": "1-namespaces",
    "Service": "2-services",
    "ReplicaSet": "3-replicasets",
    "Pod": "4-pods",
}
"""How the names of the pages of each kind begin."""


def write(directory: Path, *, nodes: int, seed: int, namespaces: int = NAMESPACES, old_revisions: int = 0) -> None:
    """Writes the list pages, unless the directory has them. Each application has `old_revisions` old ReplicaSets, as
    a Deployment keeps them, and a current one."""
    if (directory / "done").exists():
        return
    directory.mkdir(parents=True, exist_ok=True)
    d = random.Random(f"{seed}:{nodes}")
    applications = _applications(nodes)
    _pages(directory, LISTS["Node"], "v1", "NodeList", (_node(d, i) for i in range(nodes)))
    _pages(
        directory,
        LISTS["Namespace"],
        "v1",
        "NamespaceList",
        (
            {"metadata": {"name": f"team-{i}", "labels": {"kubernetes.io/metadata.name": f"team-{i}"}}}
            for i in range(namespaces)
        ),
    )
    _pages(directory, LISTS["Service"], "v1", "ServiceList", (_service(a, namespaces) for a in range(applications)))
    _pages(
        directory,
        LISTS["ReplicaSet"],
        "apps/v1",
        "ReplicaSetList",
        (
            _replica_set(a, namespaces, revision)
            for a in range(applications)
            for revision in (*(f"old{i}" for i in range(old_revisions)), REVISION)
        ),
    )
    _pages(directory, LISTS["Pod"], "v1", "PodList", _placed(d, nodes, applications, namespaces))
    (directory / "done").touch()


def pods_to_place(nodes: int, count: int) -> list[dict[str, Any]]:
    """Each is one more replica of another application, in turn of each kind in `KINDS`; if `count` is a multiple of
    their number, each kind has equally many."""
    applications = _applications(nodes)
    found = []
    for i in range(count):
        app = (i * 7 + i % len(KINDS) - i * 7 % len(KINDS)) % applications
        pod = _pod(app, f"new-{i}")
        found.append({"apiVersion": "v1", "kind": "Pod", **pod, "status": {"phase": "Pending"}})
    return found


def _applications(nodes: int) -> int:
    """A multiple of the number of kinds, and at least 200. A node has 30 pods of different applications, so an
    application is on only about 15 % of the nodes. One with anti-affinity to itself can take the others."""
    wanted = max(200, nodes * PODS_PER_NODE // REPLICAS)
    return wanted - wanted % len(KINDS)


def kind_of(pod: dict[str, Any]) -> str:
    """The application's kind, one of `KINDS`, such as `spread`."""
    kind: str = pod["metadata"]["labels"]["kind"]
    return kind


def node_name(i: int) -> str:
    return f"node-{i:05}"


def _pages(directory: Path, stem: str, api: str, kind: str, items: Iterator[dict[str, Any]]) -> None:
    number, page = 0, []
    for item in items:
        page.append(item)
        if len(page) == PAGE:
            _page(directory / f"{stem}-{number:04}.json", api, kind, page)
            number, page = number + 1, []
    if page:
        _page(directory / f"{stem}-{number:04}.json", api, kind, page)


def _page(path: Path, api: str, kind: str, items: list[dict[str, Any]]) -> None:
    path.write_text(
        json.dumps(
            {"kind": kind, "apiVersion": api, "metadata": {"resourceVersion": "1"}, "items": items},
            separators=(",", ":"),
        )
    )


def _node(d: random.Random, i: int) -> dict[str, Any]:
    zone = f"zone-{i % 3}"
    size = d.choice((32, 48, 64))
    room = {
        "cpu": f"{size - 1}920m",
        "memory": f"{size * 4 * 1048576 - 2000000}Ki",
        "pods": "110",
        "ephemeral-storage": "94477937300",
    }
    labels = {
        HOSTNAME: node_name(i),
        ZONE: zone,
        "topology.kubernetes.io/region": "region",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": f"m{size}",
    }
    spec: dict[str, Any] = {"podCIDR": "10.0.0.0/24"}
    if d.random() < 0.02:
        spec["unschedulable"] = True
        spec["taints"] = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    elif d.random() < 0.05:
        spec["taints"] = [
            {"key": "dedicated", "value": "batch", "effect": d.choice(("NoSchedule", "PreferNoSchedule"))}
        ]
    images = [
        {
            "names": [_image(app), f"registry.example/app-{app}@sha256:{app:064x}"],
            "sizeBytes": 50_000_000 + app % 40 * 20_000_000,
        }
        for app in d.sample(range(200), 20)
    ]
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": "Kubelet",
            "message": "kubelet says so",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    return {
        "metadata": {"name": node_name(i), "uid": f"uid-{i}", "labels": labels, "managedFields": _MANAGED},
        "spec": spec,
        "status": {"capacity": room, "allocatable": room, "images": images, "conditions": conditions},
    }


def _image(app: int) -> str:
    return f"registry.example/app-{app}:v1"


def _namespace(app: int, namespaces: int) -> str:
    return f"team-{app % namespaces}"


def _service(app: int, namespaces: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"app-{app}", "namespace": _namespace(app, namespaces)},
        "spec": {"selector": {"app": f"app-{app}"}, "ports": [{"port": 80}]},
    }


def _replica_set(app: int, namespaces: int, revision: str) -> dict[str, Any]:
    labels = {"app": f"app-{app}", "pod-template-hash": revision}
    is_present = revision == REVISION
    return {
        "metadata": {
            "name": f"app-{app}-{revision}",
            "namespace": _namespace(app, namespaces),
            "uid": f"rs-{app}" if is_present else f"rs-{app}-{revision}",
        },
        "spec": {
            "replicas": REPLICAS if is_present else 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": _image(app)}]}},
        },
    }


def _placed(d: random.Random, nodes: int, applications: int, namespaces: int) -> Iterator[dict[str, Any]]:
    """The pods of a node belong to different applications, because some have anti-affinity to themselves."""
    number = 0
    for i in range(nodes):
        for app in d.sample(range(applications), PODS_PER_NODE):
            pod = _pod(app, f"{number}", namespaces)
            pod["spec"]["nodeName"] = node_name(i)
            pod["status"] = _running(pod, number)
            yield pod
            number += 1


def _pod(app: int, suffix: str, namespaces: int = NAMESPACES) -> dict[str, Any]:
    kind = KINDS[app % len(KINDS)]
    labels = {"app": f"app-{app}", "pod-template-hash": "5d4f", "kind": kind}
    name = f"app-{app}-5d4f-{suffix}"
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"app-{app}-5d4f",
        "uid": f"rs-{app}",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    container = {
        "name": "c",
        "image": _image(app),
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "requests": {"cpu": f"{(app % 8 + 1) * 50}m", "memory": f"{(app % 5 + 1) * 256}Mi"},
            "limits": {"memory": "2Gi"},
        },
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(6)],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"},
            "periodSeconds": 10,
            "timeoutSeconds": 1,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "volumeMounts": [
            {"name": "kube-api-access", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        ],
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "restartPolicy": "Always",
        "serviceAccountName": "default",
        "schedulerName": "default-scheduler",
        "priority": 0,
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "volumes": [_TOKEN],
        "tolerations": _TOLERATIONS,
    }
    spec |= wishes(kind, app)
    return {
        "metadata": {
            "name": name,
            "generateName": f"app-{app}-5d4f-",
            "namespace": _namespace(app, namespaces),
            "uid": f"pod-{name}",
            "labels": labels,
            "ownerReferences": [owner],
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "resourceVersion": "1",
            "managedFields": _MANAGED,
        },
        "spec": spec,
    }


def wishes(kind: str, app: int) -> dict[str, Any]:
    own = {"matchLabels": {"app": f"app-{app}"}}
    if kind == "spread":
        return {
            "topologySpreadConstraints": [
                {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own},
                {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": own},
            ]
        }
    if kind == "anti-affinity":
        return {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOSTNAME, "labelSelector": own}]
                }
            }
        }
    if kind == "preferred-affinity":
        other = {"matchLabels": {"app": f"app-{app + 1}"}}
        return {
            "affinity": {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 50, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": other}}
                    ]
                },
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 100, "podAffinityTerm": {"topologyKey": HOSTNAME, "labelSelector": own}}
                    ]
                },
            }
        }
    return {}


def _running(pod: dict[str, Any], number: int) -> dict[str, Any]:
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:05Z"}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    container = {
        "name": "c",
        "image": pod["spec"]["containers"][0]["image"],
        "imageID": f"registry.example/app@sha256:{number:064x}",
        "containerID": f"containerd://{number:064x}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:04Z"}},
        "lastState": {},
        "resources": pod["spec"]["containers"][0]["resources"],
        "allocatedResources": pod["spec"]["containers"][0]["resources"]["requests"],
    }
    return {
        "phase": "Running",
        "conditions": conditions,
        "hostIP": "10.1.2.3",
        "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "qosClass": "Burstable",
        "startTime": "2026-01-01T00:00:01Z",
        "containerStatuses": [container],
    }


_TOKEN = {
    "name": "kube-api-access",
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
    },
}
_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
_MANAGED = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:kind": {}}},
            "f:spec": {f"f:field{i}": {} for i in range(12)},
            "f:status": {f"f:field{i}": {".": {}, "f:part": {}} for i in range(8)},
        },
    }
    for manager in ("kube-controller-manager", "kubelet")
]


def pod_at(node: int | None, *, app: int, suffix: str, is_running: bool) -> dict[str, Any]:
    """As a watch sends it: pending, bound to a node, or running there."""
    pod = {"apiVersion": "v1", "kind": "Pod", **_pod(app, suffix)}
    pod["status"] = {"phase": "Pending"}
    if node is not None:
        pod["spec"]["nodeName"] = node_name(node)
        pod["status"] = _running(pod, 0) if is_running else pod["status"]
    return pod


def node_object(i: int, *, seed: int) -> dict[str, Any]:
    """As a watch sends it."""
    return {"apiVersion": "v1", "kind": "Node", **_node(random.Random(f"{seed}:{i}"), i)}
