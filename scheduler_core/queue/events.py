"""The events in a cluster that might help a waiting pod: a kind of resource and an action on it.

Names and matching follow k8s.io/kube-scheduler/framework/types.go and pkg/scheduler/framework/types.go (v1.36). Which
event helps which pod is decided in hints/.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag, StrEnum
from typing import Any, Final

from scheduler_core.model.pod import Pod
from scheduler_core.values import Value


class Action(IntFlag):
    """Matching also compares the masks as numbers, so the order of the bits matters."""

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    ALL = (1 << 13) - 1
    UPDATE = ALL & ~0b11


class Resource(StrEnum):
    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    ANY = "*"


class ClusterEvent(Value):
    """A plugin may register several actions as one value, such as `Action.ADD | Action.DELETE`; a change that the queue
    receives usually has one."""

    resource: Resource
    action: Action

    @property
    def label(self) -> str:
        """As kube-scheduler's metrics name it, such as `NodeUpdateNodeTaint`."""
        action = "Update" if self.action == Action.UPDATE else (self.action.name or "").title().replace("_", "")
        return f"{self.resource}{action}"

    @property
    def is_wildcard(self) -> bool:
        return self.resource is Resource.ANY and self.action == Action.ALL

    def matches(self, happened: ClusterEvent) -> bool:
        """Whether a plugin that registered this event receives `happened`."""
        if self.is_wildcard:
            return True
        # The second comparison keeps a general update (every update bit) from plugins that registered only one kind.
        # int's `&`: that of IntFlag makes an Action.
        return (
            self._covers(happened.resource)
            and int.__and__(self.action, happened.action) != 0
            and happened.action <= self.action
        )

    def _covers(self, resource: Resource) -> bool:
        if self.resource in (Resource.ANY, resource):
            return True
        return self.resource is Resource.POD and resource in (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD)


Hint = Callable[[Pod, Any, Any], bool]
"""Whether a change may make this waiting pod schedulable. `old` is None for a new object, `new` for a deleted one."""


def always(_pod: Pod, _old: Any, _new: Any) -> bool:
    """For a plugin that cannot decide whether an event helps."""
    return True


def never(_pod: Pod, _old: Any, _new: Any) -> bool:
    """For events that should only make the queue call the plugin's PreEnqueue again."""
    return False


class EventHint(Value):
    """A registered event, and whether one of this kind helps a pod that the plugin refused."""

    event: ClusterEvent
    helps: Hint = always


POD_ADDED: Final = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)
POD_UPDATED: Final = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE)
ASSIGNED_POD_ADDED: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETED: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(Resource.ANY, Action.ALL)
FORCE_ACTIVATE: Final = ClusterEvent(Resource.ANY, Action.ALL)

EVERY_EVENT: Final = tuple(
    EventHint(ClusterEvent(resource, Action.ALL))
    for resource in (
        Resource.POD,
        Resource.NODE,
        Resource.PERSISTENT_VOLUME,
        Resource.PERSISTENT_VOLUME_CLAIM,
        Resource.CSI_NODE,
        Resource.CSI_DRIVER,
        Resource.CSI_STORAGE_CAPACITY,
        Resource.STORAGE_CLASS,
        Resource.RESOURCE_CLAIM,
        Resource.DEVICE_CLASS,
    )
)
"""The events for a plugin that registers none itself, and for an extender that refused nodes."""
