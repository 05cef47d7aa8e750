"""Runs one plugin for a pod in a cluster of API objects."""

from __future__ import annotations

from typing import Any

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.verdict import Verdict
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.node_list import NodeList

SKIPPED = "skipped"


def ask(plugin: Any, *objects: dict[str, Any], pod: str = "default/pod") -> Any:
    """Runs the plugin's PreFilter and Filter for the pod. Returns the refusal of PreFilter, or SKIPPED, or the filter's
    verdict for each node. Checks that a call for all nodes gives the same verdicts as a call for each node."""
    snapshot = load_objects(objects)
    assert not snapshot.problems, snapshot.problems
    nodes, state, asked = NodeList(snapshot), CycleState(), snapshot.pod(pod)
    prepared = plugin.pre_filter(state, asked, nodes).verdict
    if prepared.is_skip:
        return SKIPPED
    if not prepared.is_success:
        return prepared
    verdicts: dict[str, Verdict] = {node_info.name: plugin.filter(state, asked, node_info) for node_info in nodes}
    if hasattr(plugin, "filter_all"):
        refusals = plugin.filter_all(state, asked, nodes)
        assert [refusals.verdict(int(code)) for code in refusals.codes] == list(verdicts.values())
    return verdicts


def refused(verdicts: Any) -> dict[str, tuple[str, ...]]:
    """Returns, for each node that the plugin refuses, the reasons of the refusal."""
    assert isinstance(verdicts, dict), verdicts
    return {name: verdict.reasons for name, verdict in verdicts.items() if not verdict.is_success}


# ---- objects ----


def claim(
    name: str = "data", *, bound_to: str = "", storage_class: str | None = "wait", size: str = "1Gi", **fields: Any
) -> dict[str, Any]:
    """Returns a PersistentVolumeClaim, by default of the storage class `wait`. If `bound_to` is set, the claim is bound
    to the volume of this name."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound_to else {}
    annotations |= fields.pop("annotations", {})
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "annotations": annotations,
        **fields.pop("metadata", {}),
    }
    spec = {
        "storageClassName": storage_class,
        "volumeName": bound_to,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        **fields.pop("spec", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Bound" if bound_to else "Pending", **fields.pop("status", {})},
    }


def volume(
    name: str = "pv",
    *,
    labels: dict[str, str] | None = None,
    zones: tuple[str, ...] = (),
    size: str = "1Gi",
    storage_class: str = "wait",
    **fields: Any,
) -> dict[str, Any]:
    """Returns an available PersistentVolume of the storage class `wait`. If `zones` is set, only nodes in these zones
    can reach the volume."""
    affinity = (
        {
            "required": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}]
            }
        }
        if zones
        else None
    )
    spec = {
        "storageClassName": storage_class,
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "nodeAffinity": affinity,
        **fields.pop("spec", {}),
    }
    meta = {"name": name, "labels": labels or {}, **fields.pop("metadata", {})}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Available", **fields.pop("status", {})},
    }


def storage_class(
    name: str = "wait",
    *,
    mode: str | None = "WaitForFirstConsumer",
    provisioner: str = "kubernetes.io/no-provisioner",
    **fields: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **fields,
    }


def csi_volume(name: str, handle: str, driver: str = "csi.example") -> dict[str, Any]:
    return volume(name, spec={"csi": {"driver": driver, "volumeHandle": handle}})


def csi_node(name: str, driver: str = "csi.example", limit: int | None = None, **metadata: Any) -> dict[str, Any]:
    allocatable = None if limit is None else {"count": limit}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, **metadata},
        "spec": {"drivers": [{"name": driver, "nodeID": name, "allocatable": allocatable}]},
    }


def using(*claims: str) -> list[dict[str, Any]]:
    """Returns the volumes of a pod spec that uses these claims."""
    return [{"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}} for index, name in enumerate(claims)]
