"""Storage and device objects as JSON; see wire.py. storage_from_manifest.py converts them to the model."""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler_core.model.manifests.wire import (
    Quantities,
    Wire,
    WireCondition,
    WireDisk,
    WireMeta,
    WireNodeSelector,
    WireResources,
    WireSelector,
)


class WireDataSource(Wire, frozen=True):
    kind: str = ""


class WireClaimSpec(Wire, frozen=True):
    storage_class_name: str | None = None
    volume_name: str = ""
    access_modes: tuple[str, ...] | None = None
    volume_mode: str | None = None
    selector: WireSelector | None = None
    resources: WireResources | None = None
    volume_attributes_class_name: str | None = None
    data_source: WireDataSource | None = None
    data_source_ref: WireDataSource | None = None


class WirePhase(Wire, frozen=True):
    phase: str = ""


class WireClaim(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WireClaimSpec = WireClaimSpec()
    status: WirePhase | None = None


class WireClaimRef(Wire, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class WireVolumeAffinity(Wire, frozen=True):
    required: WireNodeSelector | None = None


class WireVolumeCsi(Wire, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class WirePersistentVolumeSpec(Wire, frozen=True):
    capacity: Quantities | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: WireClaimRef | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: WireVolumeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: WireVolumeCsi | None = None
    gce_persistent_disk: WireDisk | None = msgspec.field(default=None, name="gcePersistentDisk")
    aws_elastic_block_store: WireDisk | None = msgspec.field(default=None, name="awsElasticBlockStore")
    azure_disk: WireDisk | None = None
    azure_file: WireDisk | None = None
    cinder: WireDisk | None = None
    vsphere_volume: WireDisk | None = None
    portworx_volume: WireDisk | None = None


class WirePersistentVolume(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WirePersistentVolumeSpec = WirePersistentVolumeSpec()
    status: WirePhase | None = None


class WireTopologyExpression(Wire, frozen=True):
    key: str = ""
    values: tuple[str, ...] | None = None


class WireTopologyTerm(Wire, frozen=True):
    match_label_expressions: tuple[WireTopologyExpression, ...] | None = None


class WireStorageClass(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[WireTopologyTerm, ...] | None = None


class WireCount(Wire, frozen=True):
    count: int | None = None


class WireCsiNodeDriver(Wire, frozen=True):
    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] | None = None
    allocatable: WireCount | None = None


class WireCsiNodeSpec(Wire, frozen=True):
    drivers: tuple[WireCsiNodeDriver, ...] | None = None


class WireCsiNode(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WireCsiNodeSpec | None = None


class WireCsiDriverSpec(Wire, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class WireCsiDriver(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WireCsiDriverSpec | None = None


class WireCsiStorageCapacity(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    storage_class_name: str = ""
    node_topology: WireSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class WireAttachmentSource(Wire, frozen=True):
    persistent_volume_name: str | None = None
    inline_volume_spec: WirePersistentVolumeSpec | None = None


class WireAttachmentSpec(Wire, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: WireAttachmentSource = WireAttachmentSource()


class WireAttachment(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WireAttachmentSpec = WireAttachmentSpec()


class WireAllocatedDevice(Wire, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    skip_node_operations: tuple[Any, ...] | None = None


class WireDeviceAllocation(Wire, frozen=True):
    results: tuple[WireAllocatedDevice, ...] | None = None


class WireDeviceStatus(Wire, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[WireCondition, ...] | None = None


class WireAllocation(Wire, frozen=True):
    node_selector: WireNodeSelector | None = None
    devices: WireDeviceAllocation = WireDeviceAllocation()
    allocation_timestamp: str | None = None


class WireConsumer(Wire, frozen=True):
    uid: str = ""


class WireResourceClaimStatus(Wire, frozen=True):
    allocation: WireAllocation | None = None
    devices: tuple[WireDeviceStatus, ...] | None = None
    reserved_for: tuple[WireConsumer, ...] | None = None


class WireDeviceRequestAlternative(Wire, frozen=True):
    name: str = ""
    device_class_name: str = ""


class WireDeviceRequest(Wire, frozen=True):
    name: str = ""
    exactly: WireDeviceRequestAlternative | None = None
    first_available: tuple[WireDeviceRequestAlternative, ...] | None = None


class WireDeviceClaim(Wire, frozen=True):
    requests: tuple[WireDeviceRequest, ...] | None = None


class WireResourceClaimSpec(Wire, frozen=True):
    devices: WireDeviceClaim = WireDeviceClaim()


class WireResourceClaim(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WireResourceClaimSpec = WireResourceClaimSpec()
    status: WireResourceClaimStatus | None = None


class WireDeviceClassSpec(Wire, frozen=True):
    extended_resource_name: str | None = None


class WireDeviceClass(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WireDeviceClassSpec | None = None
