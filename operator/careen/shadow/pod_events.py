"""What a watch event of a pod says about scheduling: bound, refused because no node fits, or neither."""

from __future__ import annotations

from typing import Final

import msgspec

from scheduler_core.values import Value

_MIRROR: Final = "kubernetes.io/config.mirror"


class PodNews(Value, kw_only=True):
    """What one watch event says about one pod."""

    type: str
    key: str
    uid: str = ""
    scheduler: str = "default-scheduler"
    node: str = ""
    is_refused: bool = False
    """The scheduler has said that the pod fits on no node."""
    is_leaving: bool = False
    """The pod has finished or is being deleted."""
    is_deleted: bool = False
    """The pod is being deleted or is gone, not only finished."""
    is_mirror: bool = False


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = "default"
    uid: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Status(msgspec.Struct, gc=False):
    phase: str = ""
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct, gc=False):
    type: str
    object: _Pod


_EVENT: Final = msgspec.json.Decoder(_Event)


def read_news(line: bytes) -> PodNews | None:
    """None if the event is unreadable; the cache reports that."""
    try:
        event = _EVENT.decode(line)
    except (ValueError, RecursionError):
        return None
    meta, spec, status = event.object.metadata, event.object.spec, event.object.status
    is_deleted = bool(meta.deletion_timestamp) or event.type == "DELETED"
    return PodNews(
        type=event.type,
        key=f"{meta.namespace}/{meta.name}",
        uid=meta.uid,
        scheduler=spec.scheduler_name,
        node=spec.node_name,
        is_refused=not spec.node_name and any(_says_no_room(each) for each in status.conditions or ()),
        is_leaving=is_deleted or status.phase in ("Succeeded", "Failed"),
        is_deleted=is_deleted,
        is_mirror=_MIRROR in (meta.annotations or ()),
    )


def _says_no_room(condition: _Condition) -> bool:
    return (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
