"""Everything in the cluster that is neither a node nor a pod, by the names under which plugins look it up."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.job import Job
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
    """Claims, volumes, classes, services, controllers, budgets and namespaces. Keys are "namespace/name", or
    the name alone.

    `namespaces` maps a name to its labels. `owners` are services and controllers by namespace, in the order in
    which they were given. `bound` are the controllers whose pod template names a node: kind, namespace and
    name, and that node's name."""

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

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The namespace's labels; none for a namespace that is not known, as in the scheduler."""
        return self.namespaces.get(namespace, _NO_LABELS)
