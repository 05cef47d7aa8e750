"""Hints for pods refused because nodes lack resources or free host ports.

Source: isSchedulableAfter… in plugins/noderesources/fit.go and plugins/nodeports, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import RequestRules, Requests, incoming_requests, running_requests
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler_core.model.storage.devices import DeviceClass
from scheduler_core.queue.events import Action, ClusterEvent, EventHint, Resource
from scheduler_core.queue.queued_pod import identity

_DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"


def holds_a_place(pod: Pod) -> bool:
    """Whether the pod uses resources of a node: bound or nominated."""
    return bool(pod.node_name or pod.nominated_node_name)


def is_bound(pod: Pod) -> bool:
    return bool(pod.node_name)


def room_of(kube_version: KubeVersion) -> Callable[[Pod], bool]:
    """Whether a deleted pod leaves room."""
    return holds_a_place if kube_version.nominated_pods_free_room else is_bound


def node_resources_fit(kube_version: KubeVersion, rules: RequestRules) -> tuple[EventHint, ...]:
    resizes = kube_version.status_resources_count
    leaves_room = room_of(kube_version)

    def pod_helps(pod: Pod, old: Pod, new: Pod | None) -> bool:
        if new is None:
            return leaves_room(old)
        return resizes and _frees_what_is_wanted(pod, old, new, rules)

    def node_helps(pod: Pod, old: Node | None, new: Node) -> bool:
        wanted = incoming_requests(pod.spec, rules)
        return _fits_when_empty(wanted, new) and (old is None or _has_more_of_it(wanted, old, new))

    hints = [
        EventHint(
            ClusterEvent(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN if resizes else Action.DELETE),
            pod_helps,
        ),
        EventHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE), node_helps),
    ]
    if kube_version.extended_resources_by_device_class:
        hints.append(EventHint(ClusterEvent(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE), _device_class_helps))
    return tuple(hints)


def _frees_what_is_wanted(pod: Pod, old: Pod, new: Pod, rules: RequestRules) -> bool:
    if identity(pod) == identity(new):
        return True
    if not new.node_name:
        return False
    before, after, wanted = running_requests(old, rules), running_requests(new, rules), running_requests(pod, rules)
    return any(before.amount(name) > after.amount(name) for name in _named(wanted))


def _named(requests: Requests) -> list[str]:
    """Resources with a request above zero."""
    return [name for name in (CPU, MEMORY, EPHEMERAL_STORAGE, *requests.scalars) if requests.amount(name) > 0]


def _fits_when_empty(wanted: Requests, node: Node) -> bool:
    return node.allocatable.get(PODS, 0) >= 1 and all(
        wanted.amount(name) <= node.allocatable.get(name, 0) for name in _named(wanted)
    )


def _has_more_of_it(wanted: Requests, old: Node, new: Node) -> bool:
    return any(new.allocatable.get(name, 0) > old.allocatable.get(name, 0) for name in (PODS, *_named(wanted)))


def _device_class_helps(pod: Pod, old: DeviceClass | None, new: DeviceClass) -> bool:
    if old is not None and (old.extended_resource_name or "") == (new.extended_resource_name or ""):
        return False
    wanted = incoming_requests(pod.spec, RequestRules()).scalars
    return (old is None and _DEVICE_CLASS_PREFIX + new.name in wanted) or new.extended_resource_name in wanted


def node_ports(kube_version: KubeVersion) -> tuple[EventHint, ...]:
    leaves_room = room_of(kube_version)

    def frees_a_port(pod: Pod, old: Pod, _new: Pod | None) -> bool:
        return leaves_room(old) and any(
            wanted.conflicts_with(freed) for wanted in pod.spec.host_ports for freed in old.spec.host_ports
        )

    return (
        EventHint(ClusterEvent(Resource.POD, Action.DELETE), frees_a_port),
        EventHint(ClusterEvent(Resource.NODE, Action.ADD)),
    )
