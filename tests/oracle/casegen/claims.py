"""Generates ResourceClaims. Most of these claims are already allocated. The other claims are missing, terminating or
not allocated."""

from __future__ import annotations

from typing import Any

from tests.oracle.casegen import vocabulary as word
from tests.oracle.casegen.draw import Draw


def give_claim(d: Draw, pod: dict[str, Any], nodes: list[str]) -> list[dict[str, Any]]:
    """Makes the pod use one or two ResourceClaims. Returns the objects that these claims add to the case."""
    name = pod["metadata"]["name"]
    found = []
    for i in range(d.choice((1, 1, 2))):
        claim, kind = (
            f"{name}-claim{i}",
            d.choice(
                (
                    "allocated",
                    "allocated",
                    "allocated",
                    "reserved",
                    "missing",
                    "leaving",
                    "shared",
                    "templated",
                    "not-generated",
                    "classless",
                )
            ),
        )
        if kind in ("templated", "not-generated"):
            pod["spec"].setdefault("resourceClaims", []).append({"name": f"r{i}", "resourceClaimTemplateName": "t"})
            generated = {"name": f"r{i}"} | ({"resourceClaimName": claim} if kind == "templated" else {})
            if kind == "templated" or d.maybe(0.5):
                pod["status"].setdefault("resourceClaimStatuses", []).append(generated)
            if kind == "not-generated":
                continue
        else:
            pod["spec"].setdefault("resourceClaims", []).append({"name": f"r{i}", "resourceClaimName": claim})
        if kind != "missing":
            found.append(_claim(d, claim, kind, pod, nodes))
    return found


def _claim(d: Draw, name: str, kind: str, pod: dict[str, Any], nodes: list[str]) -> dict[str, Any]:
    namespace = pod["metadata"]["namespace"]
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"claim-{namespace}-{name}"}
    if kind == "templated":
        uid = pod["metadata"]["uid"] if d.maybe(0.8) else "another"
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": uid, "controller": True}
        ]
    if kind == "leaving":
        metadata["deletionTimestamp"] = "2026-01-01T02:00:00Z"
    status: dict[str, Any] = {}
    if kind != "classless":
        allocation: dict[str, Any] = {
            "devices": {"results": [{"request": "d", "driver": "dra.example.com", "pool": "p", "device": "dev1"}]}
        }
        if d.maybe(0.8):
            expression = d.choice(
                (
                    {"key": word.HOSTNAME, "operator": "In", "values": d.some(nodes, 3)},
                    {"key": word.ZONE, "operator": "In", "values": ["za"]},
                )
            )
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        status["allocation"] = allocation
    if kind == "reserved":
        status["reservedFor"] = [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}]
    if kind == "shared":  # no limit on the number of pods is enforced any more
        status["reservedFor"] = [{"resource": "pods", "name": f"other{i}", "uid": f"other-{i}"} for i in range(3)]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "nobody"}}]}},
        "status": status,
    }


def device_class(offers: str) -> dict[str, Any]:
    """A DeviceClass that provides this extended resource."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu", "uid": "class-gpu"},
        "spec": {"extendedResourceName": offers},
    }
