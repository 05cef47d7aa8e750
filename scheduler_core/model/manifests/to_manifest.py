"""Pods and nodes back to API objects, for scheduler extenders, with only the fields that the model keeps.

Others (image pull policies, probes, managed fields) are missing. A caller that has the original object sends that
instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.model.node import Node
from scheduler_core.model.pod import Container, Pod
from scheduler_core.model.resources import CPU


def pod_to_manifest(pod: Pod) -> dict[str, Any]:
    spec = pod.spec
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "labels": dict(pod.labels)},
        "spec": {
            "containers": [_container(container) for container in spec.containers],
            "initContainers": [_container(container) for container in spec.init_containers],
            "nodeName": pod.node_name,
            "nodeSelector": dict(spec.node_selector),
            "priority": spec.priority,
            "preemptionPolicy": spec.preemption_policy,
            "schedulerName": spec.scheduler_name,
            "hostNetwork": spec.host_network,
            "overhead": _quantities(spec.overhead),
            "tolerations": [
                {"key": t.key, "operator": t.operator, "value": t.value, "effect": t.effect} for t in spec.tolerations
            ],
        },
        "status": {"phase": pod.phase, "nominatedNodeName": pod.nominated_node_name},
    }


def node_to_manifest(node: Node) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "uid": node.uid,
            "labels": dict(node.labels),
            "annotations": dict(node.annotations),
        },
        "spec": {
            "unschedulable": node.unschedulable,
            "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.taints],
        },
        "status": {
            "allocatable": {
                name: f"{amount}m" if name == CPU else str(amount) for name, amount in node.allocatable.items()
            },
            "images": [{"names": list(image.names), "sizeBytes": image.size_bytes} for image in node.images],
        },
    }


def _container(container: Container) -> dict[str, Any]:
    return {
        "name": container.name,
        "image": container.image,
        "restartPolicy": "Always" if container.restarts_always else None,
        "resources": {"requests": _quantities(container.requests), "limits": _quantities(container.limits)},
        "ports": [
            {"hostPort": port.port, "hostIP": port.ip, "protocol": port.protocol} for port in container.host_ports
        ],
    }


def _quantities(nanos: Mapping[str, int]) -> dict[str, str]:
    return {name: _quantity(amount) for name, amount in nanos.items()}


def _quantity(nanos: int) -> str:
    for factor, suffix in ((10**9, ""), (10**6, "m"), (10**3, "u")):
        if nanos % factor == 0:
            return f"{nanos // factor}{suffix}"
    return f"{nanos}n"
