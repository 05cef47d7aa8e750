"""Claims, volumes, storage classes, and the attachable volumes of nodes."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from scheduler_core.model.labels import LabelSelector, NodeSelector
from scheduler_core.model.pod import OwnerReference
from scheduler_core.values import Value


class PersistentVolumeClaim(Value, kw_only=True):
    """`request_nanos` in nano-bytes (10⁻⁹ bytes). `class_name` is None if the claim has no storage class."""

    name: str
    namespace: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    class_name: str | None = None
    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    selector: LabelSelector | None = None
    request_nanos: int = 0
    attributes_class_name: str | None = None
    owner: OwnerReference | None = None
    terminating: bool = False
    phase: str = ""
    data_source: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class ClaimReference(Value):
    """PV.spec.claimRef. If `uid` is empty, the volume is only pre-bound, by the claim's name."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class PersistentVolume(Value, kw_only=True):
    """CSI volumes have `csi_driver` and `csi_handle`; in-tree volumes `legacy_kind` and `legacy_identity`."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    class_name: str = ""
    capacity_nanos: int = 0
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    phase: str = ""
    claim: ClaimReference | None = None
    node_affinity: NodeSelector | None = None
    attributes_class_name: str | None = None
    csi_driver: str = ""
    csi_handle: str = ""
    legacy_kind: str = ""
    legacy_identity: str = ""
    terminating: bool = False


class TopologyRequirement(Value):
    """One key with its allowed values, from StorageClass.allowedTopologies."""

    key: str
    values: tuple[str, ...]


class StorageClass(Value, kw_only=True):
    """`binding_mode` is None if the object has none, which the scheduler reports as an error. A node must match one of
    the terms in `allowed_topologies`; without terms, every node is allowed."""

    name: str
    provisioner: str = ""
    binding_mode: str | None = None
    allowed_topologies: tuple[tuple[TopologyRequirement, ...], ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


class CSINodeDriver(Value, kw_only=True):
    name: str
    node_id: str = ""
    allocatable_count: int | None = None
    topology_keys: tuple[str, ...] = ()


class CSINode(Value, kw_only=True):
    name: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    drivers: tuple[CSINodeDriver, ...] = ()


class CSIDriver(Value, kw_only=True):
    name: str
    storage_capacity: bool = False
    prevent_scheduling_if_missing: bool = False


class CSIStorageCapacity(Value, kw_only=True):
    """What can still be provisioned for a storage class on the nodes that `node_topology` matches. In nano-bytes (10⁻⁹
    bytes), or None if absent."""

    name: str
    namespace: str
    class_name: str
    node_topology: LabelSelector | None = None
    capacity_nanos: int | None = None
    maximum_volume_size_nanos: int | None = None


class VolumeAttachment(Value, kw_only=True):
    """Attached, or being attached. A migrated inline volume has `inline_driver` and `inline_handle` instead of
    `volume_name`."""

    name: str
    attacher: str
    node_name: str
    volume_name: str | None = None
    inline_driver: str = ""
    inline_handle: str = ""
