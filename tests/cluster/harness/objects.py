"""What is read from API objects in more than one place."""

from __future__ import annotations

from tests.cluster.harness.api import Object


def condition(item: Object, kind: str) -> str:
    found = (entry["status"] for entry in item.get("status", {}).get("conditions", ()) if entry["type"] == kind)
    return next(found, "Unknown")


def condition_reason(item: Object, kind: str) -> str:
    """Why a condition is as it is; empty where there is no such condition."""
    found = (entry.get("reason", "") for entry in item.get("status", {}).get("conditions", ()) if entry["type"] == kind)
    return next(found, "")


def owner_of(item: Object) -> str:
    """The controller people know: a ReplicaSet counts as its Deployment."""
    for owner in item["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            if owner["kind"] == "ReplicaSet":
                return "Deployment/" + owner["name"].rpartition("-")[0]
            return f"{owner['kind']}/{owner['name']}"
    return ""
