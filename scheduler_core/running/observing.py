"""What a change of the cluster means for the queue and for pods on their way to a node.

One table by kind. Source: pkg/scheduler/eventhandlers.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from scheduler_core.cache.changes import Change
from scheduler_core.model.pod import Pod
from scheduler_core.model.storage.volumes import ClaimReference
from scheduler_core.queue.events import (
    ASSIGNED_POD_ADDED,
    ASSIGNED_POD_DELETED,
    Action,
    ClusterEvent,
    Resource,
)
from scheduler_core.queue.hints.changes import node_changes, pod_changes
from scheduler_core.running import binding, evicting
from scheduler_core.running.commands import WriteStatus
from scheduler_core.running.parts import Parts

_NODE_ADDED: Final = ClusterEvent(Resource.NODE, Action.ADD)
_NODE_DELETED: Final = ClusterEvent(Resource.NODE, Action.DELETE)


def observe(parts: Parts, change: Change, now: float) -> None:
    handler = HANDLERS.get(change.kind)
    if handler is not None and (change.old is not None or change.new is not None):
        handler(parts, change, now)


# ---- pods ----


def _pod(parts: Parts, change: Change, now: float) -> None:
    old, new = change.old, change.new
    if parts.evictions and old is not None and (new is None or new.terminating or new.uid != old.uid):
        evicting.seen(parts, old, now)
    if old is not None and new is not None and old.uid != new.uid:
        _pod_gone(parts, old, change.assumed, now)
        _pod_came(parts, new, now)
    elif old is None:
        _pod_came(parts, new, now)
    elif new is None:
        _pod_gone(parts, old, change.assumed, now)
    elif old.node_name:
        for event in pod_changes(old, new, parts.scheduler.rules):
            parts.queue.move_all(event, old, new, now)
    elif new.node_name:
        _pod_bound(parts, old, new, change.assumed, now)
    else:
        _pending_pod_changed(parts, old, new, change.assumed, now)


def _pod_came(parts: Parts, pod: Pod, now: float) -> None:
    if pod.node_name:
        parts.queue.move_all(ASSIGNED_POD_ADDED, None, pod, now)
    elif parts.is_ours(pod) and not pod.terminating:
        parts.queue.add(pod, now)


def _pod_bound(parts: Parts, old: Pod, new: Pod, assumed: str, now: float) -> None:
    """By us or by somebody else."""
    binding.seen(parts, old.uid, new.node_name, now)
    _leave(parts, old)
    if assumed and assumed != new.node_name:
        parts.queue.move_all(ASSIGNED_POD_DELETED, old.on_node(assumed), None, now)
    parts.queue.move_all(ASSIGNED_POD_ADDED, None, new, now)


def _pod_gone(parts: Parts, pod: Pod, assumed: str, now: float) -> None:
    node = pod.node_name or assumed
    on_its_way = parts.bindings.get(pod.uid)
    if on_its_way is not None:
        binding.gone(parts, on_its_way, now)
    if not pod.node_name:
        _leave(parts, pod)
    parts.evictions.pop(pod.uid, None)
    if node:
        parts.queue.move_all(ASSIGNED_POD_DELETED, pod.on_node(node) if assumed else pod, None, now)
    elif pod.nominated_node_name:
        _nomination_gone(parts, pod, now)


def _pending_pod_changed(parts: Parts, old: Pod, new: Pod, assumed: str, now: float) -> None:
    said = parts.said.get(new.uid)
    if said is not None and not parts.writes.has(WriteStatus, new.uid):
        version = parts.cache.version("Pod", new.key)
        if version is None or said.version is None or version >= said.version:
            del parts.said[new.uid]
    if not parts.is_ours(new):
        return
    if assumed:
        _assumed_pod_changed(parts, new, now)
        return
    if new.terminating:
        _leave(parts, old)
    else:
        parts.queue.update(old, new, pod_changes(old, new, parts.scheduler.rules), now)
    ends = new.terminating or old.nominated_node_name != new.nominated_node_name
    if old.nominated_node_name and ends and not old.terminating:
        _nomination_gone(parts, old, now)


def _assumed_pod_changed(parts: Parts, new: Pod, now: float) -> None:
    """Only a deletion matters, and only before the Bind may have taken effect: then the room on the node is free at
    once."""
    on_its_way = parts.bindings.get(new.uid)
    if new.terminating and on_its_way is not None and on_its_way.is_before_bind:
        binding.reject(parts, on_its_way, "the pod is being deleted", now)


def _nomination_gone(parts: Parts, pod: Pod, now: float) -> None:
    """The room that was kept for the pod may serve pods of at most its priority."""
    parts.queue.move_all(
        ASSIGNED_POD_DELETED, pod, None, now, may_move=lambda waiting: waiting.priority <= pod.priority
    )


def _leave(parts: Parts, pod: Pod) -> None:
    """The pod needs no scheduling any more."""
    parts.queue.delete(pod)
    parts.writes.withdraw(pod.uid, WriteStatus)
    parts.said.pop(pod.uid, None)


# ---- nodes and other objects ----


def _node(parts: Parts, change: Change, now: float) -> None:
    if change.old is None:
        parts.queue.move_all(_NODE_ADDED, None, change.new, now)
    elif change.new is None:
        parts.queue.move_all(_NODE_DELETED, change.old, None, now)
    else:
        for event in node_changes(change.old, change.new):
            parts.queue.move_all(event, change.old, change.new, now)


def _other(resource: Resource) -> Callable[[Parts, Change, float], None]:
    def handle(parts: Parts, change: Change, now: float) -> None:
        action = Action.ADD if change.old is None else Action.DELETE if change.new is None else Action.UPDATE
        parts.queue.move_all(ClusterEvent(resource, action), change.old, change.new, now)

    return handle


def _volume(resource: Resource) -> Callable[[Parts, Change, float], None]:
    tell_queue = _other(resource)

    def handle(parts: Parts, change: Change, now: float) -> None:
        tell_queue(parts, change, now)
        claim: ClaimReference | None = getattr(change.new, "claim", None)
        claim_key = "" if claim is None else claim.key
        binding.volume_changed(parts, change.kind, change.key, claim_key, now)

    return handle


HANDLERS: Final[Mapping[str, Callable[[Parts, Change, float], None]]] = {
    "Pod": _pod,
    "Node": _node,
    "PersistentVolume": _volume(Resource.PERSISTENT_VOLUME),
    "PersistentVolumeClaim": _volume(Resource.PERSISTENT_VOLUME_CLAIM),
    "StorageClass": _other(Resource.STORAGE_CLASS),
    "CSINode": _other(Resource.CSI_NODE),
    "CSIDriver": _other(Resource.CSI_DRIVER),
    "CSIStorageCapacity": _other(Resource.CSI_STORAGE_CAPACITY),
    "VolumeAttachment": _other(Resource.VOLUME_ATTACHMENT),
    "ResourceClaim": _other(Resource.RESOURCE_CLAIM),
    "DeviceClass": _other(Resource.DEVICE_CLASS),
}
