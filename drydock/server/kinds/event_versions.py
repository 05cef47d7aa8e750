"""Events are stored as core/v1, and also served and accepted as events.k8s.io/v1.

Source: kube-apiserver `pkg/apis/events/v1/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drydock.server.kinds.resources import ResourceType

# core/v1 name -> events.k8s.io/v1 name
_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "source": "deprecatedSource",
}
_BACK = {new: old for old, new in _RENAMED.items()}


def is_converted(resource: ResourceType) -> bool:
    """Whether clients of this resource see another form than the stored one."""
    return resource.group == "events.k8s.io"


def to_served(resource: ResourceType, content: Mapping[str, Any]) -> dict[str, Any]:
    """The form that clients of this resource expect."""
    renamed = {_RENAMED.get(key, key): value for key, value in content.items()}
    return {**renamed, "apiVersion": resource.api_version, "kind": resource.kind}


def to_stored(content: Mapping[str, Any]) -> dict[str, Any]:
    """The stored form of an event of events.k8s.io/v1."""
    return {**{_BACK.get(key, key): value for key, value in content.items()}, "apiVersion": "v1", "kind": "Event"}
