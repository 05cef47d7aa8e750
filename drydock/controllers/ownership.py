"""Finds the pods of each owner, and makes a pod from a template."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import Verbs

PODS = resource_named("pods")
# A DaemonSet with this annotation has a controller of its own, so that its pods can be late.
OTHER_CONTROLLER = "drydock.example/controller"
# apimachinery util/rand SafeEncodeString: hashes without vowels, so that no words appear.
_SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def owner_reference(owner: Content) -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_uid(content: Content) -> str:
    """The uid of the object's controller; "" if there is none."""
    references = content["metadata"].get("ownerReferences") or ()
    return next((str(r["uid"]) for r in references if r.get("controller")), "")


def pods_of(verbs: Verbs, owner: Content) -> list[Content]:
    """Sorted by name."""
    uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
    return [p.content for p in verbs.store.items(PODS.storage, namespace) if controller_uid(p.content) == uid]


def is_active(pod: Content) -> bool:
    """Neither finished nor terminating: counts towards the wanted replicas."""
    return (
        pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]
    )


def is_going(content: Content) -> bool:
    return "deletionTimestamp" in content["metadata"]


def template_hash(template: Mapping[str, Any]) -> str:
    """Ten letters, different for different templates."""
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    return "".join(_SAFE_LETTERS[byte % len(_SAFE_LETTERS)] for byte in digest[:10])


def pod_from_template(
    owner: Content, template: Mapping[str, Any], *, name: str = "", labels: Mapping[str, str] | None = None
) -> Object:
    """Without `name`, the server generates the pod's name from the owner's."""
    given = template.get("metadata") or {}
    metadata: Object = {
        "labels": {**(given.get("labels") or {}), **(labels or {})},
        "ownerReferences": [owner_reference(owner)],
    }
    if given.get("annotations"):
        metadata["annotations"] = given["annotations"]
    metadata.update({"name": name} if name else {"generateName": f"{owner['metadata']['name']}-"})
    return {"metadata": metadata, "spec": template["spec"]}


def write_status(verbs: Verbs, kind: str, content: Content, status: Mapping[str, Any], actor: str) -> None:
    """Sets fields of the status. Writes nothing if each has its value already."""
    now = content.get("status") or {}
    if any(now.get(key) != value for key, value in status.items()):
        metadata = content["metadata"]
        verbs.change(
            resource_named(kind),
            metadata["namespace"],
            metadata["name"],
            lambda old: {**old, "status": {**(old.get("status") or {}), **status}},
            actor=actor,
            subresource="status",
        )


def count(pods: Iterable[Content], question: Any) -> int:
    return sum(1 for pod in pods if question(pod))
