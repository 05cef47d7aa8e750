"""Resource claims and device classes, with the fields that scheduling reads."""

from __future__ import annotations

from scheduler_core.model.labels import NodeSelector
from scheduler_core.values import Value


class DeviceRequest(Value):
    """One request of a ResourceClaim, or one alternative of a request (with the name `request/alternative`), and the
    requested device class.

    `class_name` is None if this library does not know the kind of the request.
    """

    name: str
    class_name: str | None


class ResourceClaim(Value, kw_only=True):
    """A claim for devices. `available_on` selects the nodes that can reach the allocated devices; None means every
    node.

    `reserved_for` has the uids of the claim's consumers.
    """

    name: str
    namespace: str
    uid: str = ""
    owner_uid: str = ""
    requests: tuple[DeviceRequest, ...] = ()
    allocated: bool = False
    available_on: NodeSelector | None = None
    reserved_for: tuple[str, ...] = ()
    terminating: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class DeviceClass(Value, kw_only=True):
    """A class of devices. If `extended_resource_name` is set, a pod can request the devices as the extended resource of
    this name."""

    name: str
    extended_resource_name: str | None = None
