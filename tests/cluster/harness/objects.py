"""Readers of API objects that several modules use."""

from __future__ import annotations

from tests.cluster.harness.api import Object


def condition(item: Object, kind: str) -> str:
    found = (entry["status"] for entry in item.get("status", {}).get("conditions", ()) if entry["type"] == kind)
    return next(found, "Unknown")


def condition_reason(item: Object, kind: str) -> str:
    """The reason of a condition; empty if the condition does not exist."""
    found = (entry.get("reason", "") for entry in item.get("status", {}).get("conditions", ()) if entry["type"] == kind)
    return next(found, "")


def owner_of(item: Object) -> str:
    """The controller that people know: a ReplicaSet counts as its Deployment."""
    for owner in item["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            if owner["kind"] == "ReplicaSet":
                return "Deployment/" + owner["name"].rpartition("-")[0]
            return f"{owner['kind']}/{owner['name']}"
    return ""
