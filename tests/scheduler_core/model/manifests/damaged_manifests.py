"""Complete manifests of every kind that the library reads, and copies with a part replaced, removed or added."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

Json = dict[str, Any]

_SELECTOR: Final[Json] = {
    "matchLabels": {"app": "s"},
    "matchExpressions": [{"key": "app", "operator": "In", "values": ["s"]}],
}
_META: Final[Json] = {
    "name": "s",
    "namespace": "d",
    "uid": "u",
    "labels": {"app": "s"},
    "annotations": {"a": "b"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "y", "controller": True}],
}
_TERM: Final[Json] = {"labelSelector": _SELECTOR, "topologyKey": "zone", "namespaceSelector": _SELECTOR}
_NODE_TERM: Final[Json] = {
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
_POD_SPEC: Final[Json] = {
    "containers": [
        {
            "name": "c",
            "image": "web:1",
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 1}},
            "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
        }
    ],
    "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
    "overhead": {"cpu": "10m"},
    "priority": 5,
    "preemptionPolicy": "Never",
    "nodeSelector": {"zone": "a"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODE_TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": _NODE_TERM}],
        },
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": _TERM}]},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
    },
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule", "tolerationSeconds": 3}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": _SELECTOR,
            "minDomains": 1,
        }
    ],
    "volumes": [
        {"name": "v", "persistentVolumeClaim": {"claimName": "s"}},
        {"name": "e", "emptyDir": {}},
        {"name": "g", "gcePersistentDisk": {"pdName": "x", "readOnly": True}},
    ],
    "schedulingGates": [{"name": "g"}],
    "resourceClaims": [{"name": "r", "resourceClaimName": "s"}],
    "hostNetwork": False,
}
_TEMPLATE: Final[Json] = {"metadata": {"labels": {"app": "s"}}, "spec": _POD_SPEC}


def _object(kind: str, version: str = "v1", **parts: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": _META, **parts}


WORKLOADS: Final[tuple[Json, ...]] = (
    _object("Deployment", "apps/v1", spec={"replicas": 3, "selector": _SELECTOR, "template": _TEMPLATE}),
    _object("ReplicaSet", "apps/v1", spec={"replicas": 2, "selector": _SELECTOR, "template": _TEMPLATE}),
    _object(
        "StatefulSet",
        "apps/v1",
        spec={
            "replicas": 2,
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "s"}}],
        },
    ),
    _object("DaemonSet", "apps/v1", spec={"selector": _SELECTOR, "template": _TEMPLATE}),
    _object("Job", "batch/v1", spec={"parallelism": 3, "completions": 2, "template": _TEMPLATE}),
    _object(
        "CronJob",
        "batch/v1",
        spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"parallelism": 2, "template": _TEMPLATE}}},
    ),
)
POD: Final = _object(
    "Pod",
    spec={**_POD_SPEC, "nodeName": "n1"},
    status={
        "phase": "Running",
        "startTime": "2026-01-01T00:00:10Z",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"name": "c", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}
        ],
        "resourceClaimStatuses": [{"name": "r", "resourceClaimName": "s"}],
    },
)
NODE: Final = _object(
    "Node",
    spec={"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "unschedulable": False},
    status={
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "images": [{"names": ["web:1"], "sizeBytes": 5}],
    },
)
BUDGET: Final = _object(
    "PodDisruptionBudget",
    "policy/v1",
    spec={"selector": _SELECTOR, "maxUnavailable": 1},
    status={"disruptionsAllowed": 1, "currentHealthy": 1, "disruptedPods": {"x": "2026-01-01T00:00:10Z"}},
)
OTHERS: Final[tuple[Json, ...]] = (
    _object("Namespace"),
    _object("Service", spec={"selector": {"app": "s"}}),
    _object("ReplicationController", spec={"selector": {"app": "s"}, "replicas": 2}),
    _object(
        "PersistentVolumeClaim",
        spec={
            "storageClassName": "s",
            "accessModes": ["ReadWriteOnce"],
            "volumeName": "s",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        status={"phase": "Bound"},
    ),
    _object(
        "PersistentVolume",
        spec={
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "d", "volumeHandle": "h"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [_NODE_TERM]}},
            "claimRef": {"name": "s", "namespace": "d", "uid": "u"},
        },
    ),
    _object(
        "StorageClass",
        "storage.k8s.io/v1",
        provisioner="d",
        volumeBindingMode="Immediate",
        allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    ),
    _object(
        "CSINode",
        "storage.k8s.io/v1",
        spec={"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["z"], "allocatable": {"count": 3}}]},
    ),
    _object("CSIDriver", "storage.k8s.io/v1", spec={"storageCapacity": True}),
    _object(
        "CSIStorageCapacity",
        "storage.k8s.io/v1",
        storageClassName="s",
        capacity="1Gi",
        maximumVolumeSize="1Gi",
        nodeTopology=_SELECTOR,
    ),
    _object(
        "VolumeAttachment",
        "storage.k8s.io/v1",
        spec={"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "s"}},
    ),
    _object(
        "ResourceClaim",
        "resource.k8s.io/v1",
        spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "s"}}]}},
        status={
            "allocation": {
                "allocationTimestamp": "2026-01-01T00:00:10Z",
                "nodeSelector": {"nodeSelectorTerms": [_NODE_TERM]},
                "devices": {
                    "results": [
                        {"request": "r", "driver": "d", "pool": "p", "device": "x", "bindingConditions": ["ready"]}
                    ]
                },
            },
            "reservedFor": [{"resource": "pods", "name": "s", "uid": "u"}],
            "devices": [
                {
                    "driver": "d",
                    "pool": "p",
                    "device": "x",
                    "conditions": [{"type": "ready", "status": "True"}],
                }
            ],
        },
    ),
    _object("DeviceClass", "resource.k8s.io/v1", spec={"extendedResourceName": "e.com/g"}),
)
LISTS: Final = (
    {"kind": "List", "apiVersion": "v1", "items": [POD, NODE]},
    {"kind": "PodList", "apiVersion": "v1", "items": [POD]},
)
ALL: Final = (POD, NODE, BUDGET, *WORKLOADS, *OTHERS)

_WORDS: Final = (
    *(None, True, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, float("inf"), float("nan"), "", "s", "1x", "e9"),
    *("1e999999999", "∞", b"raw", [], {}, [None], [[]], {"": None}, {1: 2}, {"name": 3}, [3], {"a": {"b": "c"}}, ()),
    *(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), {"s"}, object()),
    *("0001-01-01T00:00:00+23:59", "9" * 5000, "\ud800", "\0"),
)
_DELETED: Final = object()


@st.composite
def damaged(draw: st.DrawFn, several: tuple[Json, ...]) -> Json:
    """One of the manifests with up to three damages."""
    manifest: Any = draw(st.sampled_from(several))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(tuple(_paths(manifest))))
        manifest = _with(manifest, path, draw(st.sampled_from((_DELETED, *_WORDS))))
    return manifest if isinstance(manifest, dict) else {"kind": manifest}


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*above, key)
        yield from _paths(each, (*above, key))
    if not above and not value:
        yield ("spec",)


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    key, *rest = path
    inner = _with(value[key], tuple(rest), new) if rest else new
    if isinstance(value, dict):
        kept = {**value, key: inner}
        return {name: each for name, each in kept.items() if each is not _DELETED}
    kept_items = [*value[:key], inner, *value[key + 1 :]]
    return [each for each in kept_items if each is not _DELETED]
