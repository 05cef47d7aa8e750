"""Resource claims and device classes, with the fields that an allocated claim needs."""

from __future__ import annotations

from scheduler_core.model.labels import NodeSelector
from scheduler_core.values import Value


class DeviceRequest(Value):
    """One request of a claim, or one of its alternatives (`request/alternative`), and the class of device it asks for.

    `class_name` None when the request is of a kind that this release does not know.
    """

    name: str
    class_name: str | None


class ResourceClaim(Value, kw_only=True):
    """`allocated` with `available_on` None means that the devices can be reached from every node.

    `reserved_for` are the uids of consumers.
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
    """`extended_resource_name` lets a pod ask for its devices as if they were an extended resource."""

    name: str
    extended_resource_name: str | None = None
