"""Hints for pods that a storage plugin refused.

Source: isSchedulableAfter… in plugins/{volumebinding,volumezone,volumerestrictions,nodevolumelimits}, v1.36.
"""

from __future__ import annotations

from typing import Final

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.model.pod import Pod
from scheduler_core.model.storage.csi_migration import MIGRATED_PLUGINS_ANNOTATION, migrated_disk
from scheduler_core.model.storage.pod_claims import claims_used
from scheduler_core.model.storage.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from scheduler_core.plugins.volume_limits import has_attachable_volumes
from scheduler_core.plugins.volume_restrictions import disks_clash
from scheduler_core.plugins.volume_zone import topologies_of
from scheduler_core.queue.events import Action, ClusterEvent, EventHint, Resource
from scheduler_core.queue.hints.resources import room_of

_CLAIM_ADDED = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
_CLAIM_CHANGED = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE)
_NODE_CHANGED = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)


def _names_claim(pod: Pod, _old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """Whether one of the pod's volumes refers to this claim by name."""
    return pod.namespace == new.namespace and any(volume.claim_name == new.name for volume in pod.spec.volumes)


def _uses_claim(pod: Pod, _old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """As `_names_claim`, and also if the claim was created for one of the pod's ephemeral volumes."""
    return pod.namespace == new.namespace and any(use.name == new.name for use in claims_used(pod))


# ---- VolumeRestrictions ----


def _frees_disk_or_claim(pod: Pod, old: Pod, _new: Pod | None) -> bool:
    if old.namespace != pod.namespace:
        return False
    freed = {volume.claim_name for volume in old.spec.volumes} - {None}
    return disks_clash(pod, old) or any(
        volume.claim_name in freed for volume in pod.spec.volumes if volume.claim_name is not None
    )


VOLUME_RESTRICTIONS: Final = (
    EventHint(ClusterEvent(Resource.POD, Action.DELETE), _frees_disk_or_claim),
    EventHint(ClusterEvent(Resource.NODE, Action.ADD)),
    EventHint(_CLAIM_ADDED, _names_claim),
)


# ---- NodeVolumeLimits ----


def _raises_a_limit(_pod: Pod, old: CSINode, new: CSINode) -> bool:
    before = {driver.name: driver.allocatable_count or 0 for driver in old.drivers}
    return any((driver.allocatable_count or 0) > before.get(driver.name, 0) for driver in new.drivers)


def _attachment_is_of_concern(pod: Pod, old: VolumeAttachment, _new: VolumeAttachment | None) -> bool:
    for volume in pod.spec.volumes:
        if volume.claim_name is not None:
            return True
        handle = migrated_disk(volume.legacy_disk) if volume.legacy_disk is not None else None
        if handle is not None and handle[0] == old.attacher:
            return True
    return False


def node_volume_limits(kube_version: KubeVersion) -> tuple[EventHint, ...]:
    leaves_room = room_of(kube_version)

    def frees_attachment(_pod: Pod, old: Pod, _new: Pod | None) -> bool:
        return leaves_room(old) and has_attachable_volumes(old)

    attachment_gone = ClusterEvent(Resource.VOLUME_ATTACHMENT, Action.DELETE)
    changes = (
        (
            EventHint(ClusterEvent(Resource.CSI_NODE, Action.UPDATE), _raises_a_limit),
            EventHint(attachment_gone, _attachment_is_of_concern),
        )
        if kube_version.attachments_requeue_by_driver
        else (EventHint(attachment_gone),)
    )
    return (
        EventHint(ClusterEvent(Resource.CSI_NODE, Action.ADD)),
        EventHint(ClusterEvent(Resource.POD, Action.DELETE), frees_attachment),
        EventHint(_CLAIM_ADDED, _uses_claim),
        *changes,
    )


# ---- VolumeBinding ----


def _allows_other_topologies(_pod: Pod, old: StorageClass | None, new: StorageClass) -> bool:
    return old is None or old.allowed_topologies != new.allowed_topologies


def _migrates_other_plugins(_pod: Pod, old: CSINode | None, new: CSINode) -> bool:
    return old is None or old.annotations.get(MIGRATED_PLUGINS_ANNOTATION) != new.annotations.get(
        MIGRATED_PLUGINS_ANNOTATION
    )


def _stops_counting_capacity(pod: Pod, old: CSIDriver, new: CSIDriver) -> bool:
    return (
        old.storage_capacity
        and not new.storage_capacity
        and any(volume.csi_driver == new.name for volume in pod.spec.volumes)
    )


def _has_more_room(_pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> bool:
    if old is None:
        return True
    before, after = _limit(old), _limit(new)
    return after is not None and (before is None or after > before)


def _limit(capacity: CSIStorageCapacity) -> int | None:
    return capacity.capacity_nanos if capacity.maximum_volume_size_nanos is None else capacity.maximum_volume_size_nanos


VOLUME_BINDING: Final = (
    EventHint(ClusterEvent(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE), _allows_other_topologies),
    EventHint(_CLAIM_CHANGED, _uses_claim),
    EventHint(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE)),
    EventHint(_NODE_CHANGED),
    EventHint(ClusterEvent(Resource.CSI_NODE, Action.ADD | Action.UPDATE), _migrates_other_plugins),
    EventHint(ClusterEvent(Resource.CSI_DRIVER, Action.UPDATE), _stops_counting_capacity),
    EventHint(ClusterEvent(Resource.CSI_STORAGE_CAPACITY, Action.ADD | Action.UPDATE), _has_more_room),
)


# ---- VolumeZone ----


def _waits_for_consumers(_pod: Pod, _old: StorageClass | None, new: StorageClass) -> bool:
    return new.binding_mode == "WaitForFirstConsumer"


def _is_elsewhere_now(_pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> bool:
    return old is None or topologies_of(old) != topologies_of(new)


VOLUME_ZONE: Final = (
    EventHint(ClusterEvent(Resource.STORAGE_CLASS, Action.ADD), _waits_for_consumers),
    EventHint(_NODE_CHANGED),
    EventHint(_CLAIM_CHANGED, _names_claim),
    EventHint(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE), _is_elsewhere_now),
)
