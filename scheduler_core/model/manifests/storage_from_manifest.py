"""Claims, volumes, storage classes, attachable volumes and device claims: from wire structures to the model.

from_manifest.py reads pods, nodes and related objects.
"""

from __future__ import annotations

from scheduler_core.model.manifests import wire_storage
from scheduler_core.model.manifests.fields import (
    API_NAME,
    DISK_IDENTITY,
    amounts_nanos,
    label_selector,
    labels_of,
    nanos,
    node_selector,
    seconds,
)
from scheduler_core.model.pod import OwnerReference
from scheduler_core.model.storage.devices import DeviceClass, DeviceRequest, Readiness, ResourceClaim
from scheduler_core.model.storage.volumes import (
    ClaimReference,
    CSIDriver,
    CSINode,
    CSINodeDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyRequirement,
    VolumeAttachment,
)

_EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


def claim(written: wire_storage.WireClaim) -> PersistentVolumeClaim:
    meta, spec = written.metadata, written.spec
    requests = amounts_nanos(spec.resources.requests if spec.resources else None, "spec.resources.requests")
    owner = next((o for o in meta.owner_references or () if o.controller), None)
    return PersistentVolumeClaim(
        name=meta.name,
        namespace=meta.namespace or "default",
        uid=meta.uid,
        labels=labels_of(meta.labels),
        annotations=labels_of(meta.annotations),
        class_name=spec.storage_class_name,
        volume_name=spec.volume_name,
        access_modes=spec.access_modes or (),
        volume_mode=spec.volume_mode or "Filesystem",
        selector=None if spec.selector is None else label_selector(spec.selector),
        request_nanos=requests.get("storage", 0),
        attributes_class_name=spec.volume_attributes_class_name,
        owner=None if owner is None else OwnerReference(owner.api_version, owner.kind, owner.name, owner.uid),
        terminating=meta.deletion_timestamp is not None,
        phase=written.status.phase if written.status else "",
        data_source=spec.data_source is not None or spec.data_source_ref is not None,
    )


def persistent_volume(written: wire_storage.WirePersistentVolume) -> PersistentVolume:
    meta, spec = written.metadata, written.spec
    legacy = next(((f, d) for f, d in ((f, getattr(spec, f, None)) for f in DISK_IDENTITY) if d is not None), None)
    required = spec.node_affinity.required if spec.node_affinity else None
    return PersistentVolume(
        name=meta.name,
        uid=meta.uid,
        labels=labels_of(meta.labels),
        annotations=labels_of(meta.annotations),
        class_name=spec.storage_class_name,
        capacity_nanos=amounts_nanos(spec.capacity, "spec.capacity").get("storage", 0),
        access_modes=spec.access_modes or (),
        volume_mode=spec.volume_mode or "Filesystem",
        phase=written.status.phase if written.status else "",
        claim=None
        if spec.claim_ref is None
        else ClaimReference(spec.claim_ref.namespace, spec.claim_ref.name, spec.claim_ref.uid),
        node_affinity=None if required is None else node_selector(required),
        attributes_class_name=spec.volume_attributes_class_name,
        csi_driver=spec.csi.driver if spec.csi else "",
        csi_handle=spec.csi.volume_handle if spec.csi else "",
        legacy_kind="" if legacy is None else API_NAME.get(legacy[0], legacy[0]),
        legacy_identity="" if legacy is None else DISK_IDENTITY[legacy[0]](legacy[1]),
        terminating=meta.deletion_timestamp is not None,
    )


def storage_class(written: wire_storage.WireStorageClass) -> StorageClass:
    return StorageClass(
        name=written.metadata.name,
        provisioner=written.provisioner,
        binding_mode=written.volume_binding_mode,
        allowed_topologies=tuple(
            tuple(TopologyRequirement(e.key, e.values or ()) for e in term.match_label_expressions or ())
            for term in written.allowed_topologies or ()
        ),
        annotations=labels_of(written.metadata.annotations),
    )


def csi_node(written: wire_storage.WireCsiNode) -> CSINode:
    drivers = (written.spec.drivers if written.spec else None) or ()
    return CSINode(
        name=written.metadata.name,
        annotations=labels_of(written.metadata.annotations),
        drivers=tuple(
            CSINodeDriver(
                name=d.name,
                node_id=d.node_id,
                allocatable_count=d.allocatable.count if d.allocatable else None,
                topology_keys=d.topology_keys or (),
            )
            for d in drivers
        ),
    )


def csi_driver(written: wire_storage.WireCsiDriver) -> CSIDriver:
    spec = written.spec or wire_storage.WireCsiDriverSpec()
    return CSIDriver(
        name=written.metadata.name,
        storage_capacity=bool(spec.storage_capacity),
        prevent_scheduling_if_missing=bool(spec.prevent_pod_scheduling_if_missing),
    )


def csi_storage_capacity(written: wire_storage.WireCsiStorageCapacity) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        name=written.metadata.name,
        namespace=written.metadata.namespace or "default",
        class_name=written.storage_class_name,
        node_topology=None if written.node_topology is None else label_selector(written.node_topology),
        capacity_nanos=None if written.capacity is None else nanos(written.capacity, "capacity"),
        maximum_volume_size_nanos=None
        if written.maximum_volume_size is None
        else nanos(written.maximum_volume_size, "maximumVolumeSize"),
    )


def attachment(written: wire_storage.WireAttachment) -> VolumeAttachment:
    inline = written.spec.source.inline_volume_spec
    return VolumeAttachment(
        name=written.metadata.name,
        attacher=written.spec.attacher,
        node_name=written.spec.node_name,
        volume_name=written.spec.source.persistent_volume_name,
        inline_driver=inline.csi.driver if inline and inline.csi else "",
        inline_handle=inline.csi.volume_handle if inline and inline.csi else "",
    )


def resource_claim(written: wire_storage.WireResourceClaim) -> ResourceClaim:
    meta, status = written.metadata, written.status or wire_storage.WireResourceClaimStatus()
    allocation = status.allocation
    owner = next((o for o in meta.owner_references or () if o.controller), None)
    return ResourceClaim(
        name=meta.name,
        namespace=meta.namespace or "default",
        uid=meta.uid,
        owner_uid=owner.uid if owner else "",
        requests=tuple(
            request
            for written_request in written.spec.devices.requests or ()
            for request in _device_requests(written_request)
        ),
        allocated=allocation is not None,
        available_on=None
        if allocation is None or allocation.node_selector is None
        else node_selector(allocation.node_selector),
        reserved_for=tuple(c.uid for c in status.reserved_for or ()),
        terminating=meta.deletion_timestamp is not None,
        readiness=_readiness(status),
        allocated_at=None
        if allocation is None
        else seconds(allocation.allocation_timestamp, "status.allocation.allocationTimestamp"),
        skips_node_operations=any(d.skip_node_operations for d in _allocated_devices(status)),
        is_for_extended=(meta.annotations or {}).get(_EXTENDED_RESOURCE_CLAIM) == "true",
    )


def _allocated_devices(status: wire_storage.WireResourceClaimStatus) -> tuple[wire_storage.WireAllocatedDevice, ...]:
    return status.allocation.devices.results or () if status.allocation else ()


def _readiness(status: wire_storage.WireResourceClaimStatus) -> Readiness:
    """isClaimReadyForBinding of plugins/dynamicresources/dynamicresources.go, v1.36: the first device that is not ready
    decides."""
    for device in _allocated_devices(status):
        if not device.binding_conditions:
            continue
        place = (device.driver, device.pool, device.device)
        reported = next((d for d in status.devices or () if (d.driver, d.pool, d.device) == place), None)
        conditions = reported.conditions or () if reported else ()
        true: dict[str, bool] = {}
        for condition in conditions:
            true.setdefault(condition.type, condition.status == "True")
        if any(true.get(name) for name in device.binding_failure_conditions or ()):
            return "failed"
        if not all(true.get(name) for name in device.binding_conditions):
            return "waiting"
    return "ready"


def _device_requests(written: wire_storage.WireDeviceRequest) -> tuple[DeviceRequest, ...]:
    if written.exactly is not None:
        return (DeviceRequest(written.name, written.exactly.device_class_name),)
    if written.first_available:
        return tuple(
            DeviceRequest(f"{written.name}/{each.name}", each.device_class_name) for each in written.first_available
        )
    return (DeviceRequest(written.name, None),)


def device_class(written: wire_storage.WireDeviceClass) -> DeviceClass:
    return DeviceClass(
        name=written.metadata.name, extended_resource_name=written.spec.extended_resource_name if written.spec else None
    )
