"""Generates nodes. Some nodes lack common labels or have unusual capacities. Some nodes have taints, images or declared
features."""

from __future__ import annotations

from typing import Any

from tests.oracle.casegen import vocabulary as word
from tests.oracle.casegen.draw import Draw

IMAGES = {  # sizes below, between and above ImageLocality's thresholds
    "registry.example/web:v1": 31457280,
    "registry.example/cache:v1": 94371840,
    "registry.example/db:v1": 419430400,
    "registry.example/queue:v1": 943718400,
    "registry.example/ml:v1": 3145728000,
    "registry.example/plain:latest": 262144000,
    "docker.io/library/busybox@sha256:" + "ab" * 32: 734003200,
    "localhost:5000/tool:latest": 157286400,
}
DECLARED = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "UnknownFeature")


def node(d: Draw, name: str, *, tidy: bool = False) -> dict[str, Any]:
    """Returns a Node manifest. With `tidy`, the node has nearly all labels, much room, and neither taints nor a
    cordon."""
    labels = _labels(d, name, 0.02 if tidy else 0.12) if not d.maybe(0.01) else {}
    spec: dict[str, Any] = {}
    taints = [] if tidy else _taints(d)
    if not tidy and d.maybe(0.07):
        spec["unschedulable"] = True
        if d.maybe(0.7):  # the node lifecycle controller adds the taint a moment later
            taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    if taints:
        spec["taints"] = taints
    room = _allocatable(d, tidy)
    status: dict[str, Any] = {"capacity": dict(room), "allocatable": room}
    if d.maybe(0.6):
        status["images"] = _images(d)
    if d.maybe(0.2):
        status["declaredFeatures"] = sorted(d.some(DECLARED, 3))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": "node-" + name} | ({"labels": labels} if labels else {}),
        "spec": spec,
        "status": status,
    }


def _labels(d: Draw, name: str, gap: float) -> dict[str, str]:
    labels = {}
    if not d.maybe(gap / 2):
        labels[word.HOSTNAME] = name
    if not d.maybe(gap):
        beta = d.maybe(0.08)
        labels[word.BETA_ZONE if beta else word.ZONE] = d.choice(word.ZONES)
        labels[word.BETA_REGION if beta else word.REGION] = "r1" if d.maybe(0.9) else "r2"
    if not d.maybe(gap):
        labels["rack"] = f"r{d.randint(1, 4)}"
    if d.maybe(0.6):
        labels["disk"] = d.choice(("ssd", "hdd"))
    if d.maybe(0.7):
        labels["gen"] = d.often(("1", "2", "3"), ("x", "1.5", "-3", "9223372036854775808", "02"), 0.2)
    labels["pool"] = d.choice("ab")
    return labels


def _taints(d: Draw) -> list[dict[str, Any]]:
    taints = []
    for key in ("dedicated", "spot", "flaky"):
        if d.maybe(0.14):
            taint = {
                "key": key,
                "effect": d.choice(("NoSchedule", "PreferNoSchedule", "NoExecute", "PreferNoSchedule")),
            }
            if d.maybe(0.7):
                taint["value"] = d.choice("ab")
            taints.append(taint)
    if d.maybe(0.04):
        taints.append(
            {
                "key": "node.kubernetes.io/not-ready",
                "effect": d.choice(("NoSchedule", "NoExecute")),
                "timeAdded": "2026-01-01T00:00:00Z",
            }
        )
    return taints


def _allocatable(d: Draw, tidy: bool) -> dict[str, str]:
    room = {
        "cpu": d.often(("4", "8", "16", "32"), ("3920m", "15890m", "7.5", "2"), 0.3),
        "memory": d.often(("8Gi", "16Gi", "32Gi", "64Gi"), ("30500000Ki", "1e10", "16G", "12.5Gi", "16424682496"), 0.3),
        "pods": "110" if tidy else d.choice(("110", "110", "20", "4")),
    }
    if d.maybe(0.7):
        room["ephemeral-storage"] = d.choice(("20Gi", "100Gi", "94477937300"))
    for name in word.SCALARS:
        if d.maybe(0.22):
            room[name] = word.scalar_amount(d, name)
    if not tidy and d.maybe(0.03):
        del room[d.choice(("cpu", "memory", "pods"))]
    if d.maybe(0.03):
        room["unknown-name"] = "7"  # neither native nor extended: no plugin may count it
    return room


def _images(d: Draw) -> list[dict[str, Any]]:
    images = []
    for name in d.some(tuple(IMAGES), 4):
        names = [name] + (["mirror.example/" + name.rsplit("/", 1)[-1]] if d.maybe(0.2) else [])
        images.append({"names": names, "sizeBytes": IMAGES[name] + d.choice((0, 0, 0, 1048576))})
    return images
