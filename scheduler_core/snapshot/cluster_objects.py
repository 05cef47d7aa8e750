"""The objects of a cluster other than nodes and pods, under the names that plugins use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import field

from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.job import Job
from scheduler_core.model.pod import Pod
from scheduler_core.model.selecting_owner import SelectingOwner
from scheduler_core.model.storage.devices import DeviceClass, ResourceClaim
from scheduler_core.model.storage.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from scheduler_core.values import Value

_NO_LABELS: Mapping[str, str] = {}


class ClusterObjects(Value, kw_only=True):
    """Claims, volumes, classes, services, controllers, budgets and namespaces, by "namespace/name", or by name if they
    have no namespace, unless stated otherwise.

    `namespaces` maps a namespace to its labels, `owners` to its services and controllers in the order in which they
    were passed. `bound` maps a controller, as (kind, namespace, name), to the spec.nodeName of its pod template.
    `daemons` has a pod of each DaemonSet that no API server has seen: new nodes get one too.
    """

    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    owners: Mapping[str, tuple[SelectingOwner, ...]] = field(default_factory=dict)
    budgets: tuple[DisruptionBudget, ...] = ()
    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)
    csi_nodes: Mapping[str, CSINode] = field(default_factory=dict)
    csi_drivers: Mapping[str, CSIDriver] = field(default_factory=dict)
    capacities: tuple[CSIStorageCapacity, ...] = ()
    attachments: tuple[VolumeAttachment, ...] = ()
    resource_claims: Mapping[str, ResourceClaim] = field(default_factory=dict)
    device_classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    bound: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    daemons: tuple[Pod, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Iterable[Any]]) -> ClusterObjects:
        """From the objects of each kind, such as `PersistentVolume`. Of two with the same name, the later one
        counts."""
        return cls(**parts_of(values))

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """An unknown namespace has no labels, as in the scheduler."""
        return self.namespaces.get(namespace, _NO_LABELS)


_CONTROLLERS: Final = ("ReplicationController", "ReplicaSet", "StatefulSet")
ByKind = Mapping[str, Iterable[Any]]


def parts_of(values: ByKind, changed: Iterable[str] | None = None) -> dict[str, Any]:
    """The fields of ClusterObjects for the objects of each kind; with `changed`, only the fields that depend on
    these kinds."""
    wanted = None if changed is None else set(changed)
    return {
        name: gather(values)
        for name, (kinds, gather) in _FIELDS.items()
        if wanted is None or not wanted.isdisjoint(kinds)
    }


def _owners(values: ByKind) -> dict[str, tuple[SelectingOwner, ...]]:
    owners: dict[str, list[SelectingOwner]] = {}
    for kind in ("Service", *_CONTROLLERS):
        for owner in values.get(kind, ()):
            owners.setdefault(owner.namespace, []).append(owner)
    return {namespace: tuple(several) for namespace, several in owners.items()}


def _bound(values: ByKind) -> dict[tuple[str, str, str], str]:
    return {
        (kind, each.namespace, each.name): each.bound_to
        for kind in (*_CONTROLLERS, "Job")
        for each in values.get(kind, ())
        if each.bound_to
    }


def _by(attribute: str, kind: str) -> tuple[tuple[str, ...], Callable[[ByKind], Any]]:
    return (kind,), lambda values: {getattr(value, attribute): value for value in values.get(kind, ())}


def _all(kind: str) -> tuple[tuple[str, ...], Callable[[ByKind], Any]]:
    return (kind,), lambda values: tuple(values.get(kind, ()))


_FIELDS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[ByKind], Any]]]] = {
    "namespaces": (("Namespace",), lambda values: dict(values.get("Namespace", ()))),
    "owners": (("Service", *_CONTROLLERS), _owners),
    "budgets": _all("PodDisruptionBudget"),
    "claims": _by("key", "PersistentVolumeClaim"),
    "volumes": _by("name", "PersistentVolume"),
    "storage_classes": _by("name", "StorageClass"),
    "csi_nodes": _by("name", "CSINode"),
    "csi_drivers": _by("name", "CSIDriver"),
    "capacities": _all("CSIStorageCapacity"),
    "attachments": _all("VolumeAttachment"),
    "resource_claims": _by("key", "ResourceClaim"),
    "device_classes": _by("name", "DeviceClass"),
    "jobs": _by("key", "Job"),
    "bound": ((*_CONTROLLERS, "Job"), _bound),
    "daemons": _all("DaemonSet"),
}
