"""Resource claims and device classes."""

from __future__ import annotations

from typing import Literal

from scheduler_core.model.labels import NodeSelector
from scheduler_core.values import Value


class DeviceRequest(Value):
    """A request of a ResourceClaim, or one of its alternatives (named `request/alternative`).

    `class_name` is None if this library does not know the kind of the request.
    """

    name: str
    class_name: str | None


Readiness = Literal["ready", "failed", "waiting"]


class ResourceClaim(Value, kw_only=True):
    """`available_on`: the nodes that can reach the allocated devices; None: every node. `reserved_for`: the consumers'
    uids. `readiness`: by the binding conditions of the allocated devices. `allocated_at`: in seconds since the epoch;
    None if unknown. `skips_node_operations`: an allocated device leaves work to nobody on the node. `is_for_extended`:
    kube-scheduler made it for the extended resources of its owner."""

    name: str
    namespace: str
    uid: str = ""
    owner_uid: str = ""
    requests: tuple[DeviceRequest, ...] = ()
    allocated: bool = False
    available_on: NodeSelector | None = None
    reserved_for: tuple[str, ...] = ()
    terminating: bool = False
    readiness: Readiness = "ready"
    allocated_at: float | None = None
    skips_node_operations: bool = False
    is_for_extended: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class DeviceClass(Value, kw_only=True):
    """A pod can also request the devices as the extended resource `extended_resource_name`, if that is set."""

    name: str
    extended_resource_name: str | None = None
