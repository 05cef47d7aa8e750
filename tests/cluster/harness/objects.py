"""Functions that read fields of API objects. Several modules use them."""

from __future__ import annotations

from tests.cluster.harness.api import Object


def condition(item: Object, kind: str) -> str:
    found = (entry["status"] for entry in item.get("status", {}).get("conditions", ()) if entry["type"] == kind)
    return next(found, "Unknown")


def condition_reason(item: Object, kind: str) -> str:
    """Return the reason of a condition, or an empty text if the condition does not exist."""
    found = (entry.get("reason", "") for entry in item.get("status", {}).get("conditions", ()) if entry["type"] == kind)
    return next(found, "")


def owner_of(item: Object) -> str:
    """Return kind and name of a pod's controller. For a pod of a ReplicaSet, return the Deployment instead."""
    for owner in item["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            if owner["kind"] == "ReplicaSet":
                return "Deployment/" + owner["name"].rpartition("-")[0]
            return f"{owner['kind']}/{owner['name']}"
    return ""
