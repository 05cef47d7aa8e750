"""From a call's Go values to API objects that an API server could have stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from scheduler_core import Snapshot, load_objects, pod_from_manifest
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.pod import Pod
from tests.scheduler_core.peer_tables.calls import Call

Manifest = dict[str, Any]

API_VERSIONS = {
    "Node": "v1",
    "Pod": "v1",
    "PersistentVolumeClaim": "v1",
    "PersistentVolume": "v1",
    "Namespace": "v1",
    "Service": "v1",
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "StorageClass": "storage.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
    "CSIDriver": "storage.k8s.io/v1",
    "CSIStorageCapacity": "storage.k8s.io/v1",
    "VolumeAttachment": "storage.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "DeviceClass": "resource.k8s.io/v1",
}
_WITHOUT_NAMESPACE = frozenset(
    {
        "Node",
        "PersistentVolume",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "VolumeAttachment",
        "Namespace",
        "DeviceClass",
        "ResourceSlice",
    }
)
_FAKE_LISTER = re.compile(r"fake framework\.(\w+)Lister")


class ImpossibleError(Exception):
    """The row has no form as API objects, or needs what the library leaves out on purpose."""


def named(manifest: Manifest, kind: str, fallback: str) -> Manifest:
    """With kind, name and namespace, which Go's tests often leave out."""
    metadata = {name: value for name, value in (manifest.get("metadata") or {}).items() if value is not None}
    metadata["name"] = metadata.get("name") or fallback
    if kind not in _WITHOUT_NAMESPACE:
        metadata["namespace"] = metadata.get("namespace") or "default"
    return {**manifest, "kind": kind, "apiVersion": API_VERSIONS[kind], "metadata": metadata}


def as_pod(manifest: Manifest, fallback: str, node: str | None = None) -> Manifest:
    """Pods without a namespace are in "default", so affinity terms that name "" mean it too."""
    pod = named(manifest, "Pod", fallback)
    spec = pod["spec"] = dict(pod.get("spec") or {})
    spec["schedulerName"] = "default-scheduler"
    if node is not None:
        spec["nodeName"] = node
    if spec.get("affinity"):
        written = json.dumps(spec["affinity"]).replace('"namespaces": [""', '"namespaces": ["default"')
        spec["affinity"] = json.loads(written)
    for group in ("containers", "initContainers"):
        spec[group] = [
            dict(container, name=container.get("name") or f"{group}-{index}")
            for index, container in enumerate(spec.get(group) or [])
        ]
    return pod


def node_name(info: Manifest) -> str:
    """Of a NodeInfo."""
    name: str = ((info.get("node") or {}).get("metadata") or {}).get("name") or "unnamed-node"
    return name


class CalledCluster:
    """The cluster of one call, as manifests."""

    def __init__(self, call: Call) -> None:
        self.nodes: dict[str, Manifest] = {}
        self.pods: dict[tuple[str, str], Manifest] = {}
        self._others: list[Manifest] = []
        for name, info in {node_name(i): i for i in (*(call.get("snapshot") or []), call.get("node")) if i}.items():
            self.nodes[name] = named(info.get("node") or {}, "Node", name)
            for index, pod in enumerate(info.get("pods") or []):
                self._add_pod(as_pod(pod, f"{name}-pod-{index}".lower().replace("_", "-"), name))
        for kind, objects in (call.get("objects") or {}).items():
            self._add_others(kind, objects or [])
        self._incoming = as_pod(call["pod"], "incoming") if call.get("pod") else None
        if self._incoming is not None and (twin := self.pods.get(_key(self._incoming))):
            twin["metadata"]["name"] += "-placed"

    def _add_pod(self, pod: Manifest) -> None:
        if _key(pod) in self.pods:
            pod["metadata"]["name"] += f"-{len(self.pods)}"
        self.pods[_key(pod)] = pod

    def _add_others(self, kind: str, objects: Any) -> None:
        if fake := _FAKE_LISTER.fullmatch(kind):
            kind, objects = fake[1], objects if isinstance(objects, list) else [objects]
            objects = objects[0] if objects and isinstance(objects[0], list) else objects
        if kind not in API_VERSIONS:
            raise ImpossibleError(f"objects of kind {kind}")
        self._others += [named(o, kind, f"unnamed-{i}") for i, o in enumerate(objects) if isinstance(o, dict)]

    def snapshot(self) -> Snapshot:
        if not self.nodes:
            raise ImpossibleError("no node")
        names = {each["metadata"]["name"] for each in self._others if each["kind"] == "Namespace"}
        namespaces = [] if "default" in names else [named({"metadata": {"name": "default"}}, "Namespace", "")]
        return _loaded([*self.nodes.values(), *self.pods.values(), *self._others, *namespaces])

    def incoming(self) -> Pod:
        try:
            return pod_from_manifest(_plain(self._incoming), strict=False)
        except ManifestError as trouble:
            raise ImpossibleError(f"unreadable: {trouble}") from trouble


def _key(pod: Manifest) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _loaded(objects: Iterable[Manifest]) -> Snapshot:
    snapshot = load_objects(map(_plain, objects), strict=False)
    if snapshot.problems:
        raise ImpossibleError(f"unreadable: {snapshot.problems[0]}")
    return snapshot


def _plain(manifest: Manifest | None) -> Manifest:
    copied: Manifest = json.loads(json.dumps(manifest))
    return copied
