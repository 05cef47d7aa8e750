"""API objects with defaults (a_pod(), a_node(), a_budget()): a test sets only the fields that matter for its outcome.

Each step returns a new builder. `.manifest` is the API object, `.build()` the parsed value. An unknown field raises
ManifestError; a value that no API server accepts does not, because a plugin may have to meet it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.manifests.from_manifest import (
    budget_from_manifest,
    node_from_manifest,
    pod_from_manifest,
)
from scheduler_core.model.manifests.strict.checks import check_fields
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod

Json = dict[str, Any]


def a_pod(name: str = "pod", namespace: str = "default") -> PodBuilder:
    """Pending, with one container that requests nothing."""
    meta = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "labels": {}}
    return PodBuilder(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            "status": {"phase": "Pending"},
        }
    )


def a_node(name: str = "node") -> NodeBuilder:
    """Untainted, with 4 cores, 8 GiB and room for 110 pods, labelled with its host name."""
    meta = {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}}
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return NodeBuilder({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": status})


def a_budget(name: str = "budget", namespace: str = "default") -> BudgetBuilder:
    """A PodDisruptionBudget that has no selector and allows no eviction."""
    meta = {"name": name, "namespace": namespace}
    return BudgetBuilder(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta,
            "spec": {},
            "status": {"disruptionsAllowed": 0},
        }
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    manifest: Json = field(default_factory=dict)

    def with_field(self, path: str, value: object) -> Self:
        """The path is dotted: "spec.priority"."""
        manifest = copy.deepcopy(self.manifest)
        *parents, last = path.split(".")
        place = manifest
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
        return type(self)(manifest)

    def labelled(self, **labels: str) -> Self:
        """Two underscores stand for a slash, one for a dot: topology_kubernetes_io__zone="a" sets
        topology.kubernetes.io/zone."""
        return self.with_labels({key.replace("__", "/").replace("_", "."): value for key, value in labels.items()})

    def with_labels(self, labels: Mapping[str, str]) -> Self:
        return self.with_field("metadata.labels", {**self.manifest["metadata"].get("labels", {}), **labels})

    def _checked(self, kind: str) -> Json:
        check_fields(kind, self.manifest, self.manifest["metadata"]["name"], values=False)
        return self.manifest


class PodBuilder(_Builder):
    __slots__ = ()

    def build(self) -> Pod:
        return pod_from_manifest(self._checked("Pod"), strict=False)

    def requesting(self, **amounts: str) -> Self:
        """Requests of the only container: cpu="500m", memory="1Gi". For other resources, use `with_container`."""
        return self.with_container(
            {
                "name": "main",
                "image": "app:1",
                "resources": {"requests": {name.replace("_", "-"): amount for name, amount in amounts.items()}},
            }
        )

    def with_container(self, *containers: Json) -> Self:
        """Replaces the containers."""
        return self.with_field("spec.containers", list(containers))

    def on(self, node_name: str) -> Self:
        """The pod runs on this node."""
        return self.with_field("spec.nodeName", node_name).with_field("status.phase", "Running")

    def terminating(self) -> Self:
        return self.with_field("metadata.deletionTimestamp", "2026-01-01T00:00:00Z")

    def tolerating(self, *tolerations: Json) -> Self:
        return self.with_field("spec.tolerations", list(tolerations))

    def owned_by(self, kind: str, name: str, api_version: str = "apps/v1") -> Self:
        return self.with_field(
            "metadata.ownerReferences",
            [{"apiVersion": api_version, "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}],
        )

    def with_priority(self, priority: int) -> Self:
        return self.with_field("spec.priority", priority)

    def with_host_port(self, port: int, **more: str) -> Self:
        return self.with_container(
            {"name": "main", "image": "app:1", "ports": [{"containerPort": port, "hostPort": port, **more}]}
        )

    def spread_over(self, topology_key: str, **constraint: Any) -> Self:
        """Adds a topology spread constraint: by default maxSkew 1, DoNotSchedule, over pods with the same `app`
        label."""
        full = {
            "topologyKey": topology_key,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": self.manifest["metadata"]["labels"].get("app", "")}},
        }
        return self.with_field(
            "spec.topologySpreadConstraints",
            [*self.manifest["spec"].get("topologySpreadConstraints", []), {**full, **constraint}],
        )

    def with_affinity(self, **affinity: Any) -> Self:
        """nodeAffinity, podAffinity, podAntiAffinity."""
        return self.with_field("spec.affinity", {**self.manifest["spec"].get("affinity", {}), **affinity})

    def near(self, topology_key: str, labels: Mapping[str, str], **term: Any) -> Self:
        """Required pod affinity: the pod fits only where a pod of the topology domain has these labels."""
        return self.with_affinity(
            podAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [_term(topology_key, labels, term)]}
        )

    def away_from(self, topology_key: str, labels: Mapping[str, str], **term: Any) -> Self:
        """Required pod anti-affinity: the pod fits only where no pod of the topology domain has these labels."""
        return self.with_affinity(
            podAntiAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [_term(topology_key, labels, term)]}
        )

    def preferring_near(self, topology_key: str, labels: Mapping[str, str], weight: int = 1) -> Self:
        preferred = [{"weight": weight, "podAffinityTerm": _term(topology_key, labels, {})}]
        return self.with_affinity(podAffinity={"preferredDuringSchedulingIgnoredDuringExecution": preferred})

    def preferring_away_from(self, topology_key: str, labels: Mapping[str, str], weight: int = 1) -> Self:
        preferred = [{"weight": weight, "podAffinityTerm": _term(topology_key, labels, {})}]
        return self.with_affinity(podAntiAffinity={"preferredDuringSchedulingIgnoredDuringExecution": preferred})

    def requiring_nodes(self, *terms: Json) -> Self:
        """Required node affinity: at least one of the terms must match the node."""
        return self.with_affinity(
            nodeAffinity={"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        )

    def preferring_nodes(self, *weighted: tuple[int, Json]) -> Self:
        return self.with_affinity(
            nodeAffinity={
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": w, "preference": term} for w, term in weighted
                ]
            }
        )


def _term(topology_key: str, labels: Mapping[str, str], more: Mapping[str, Any]) -> Json:
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": dict(labels)}, **more}


class NodeBuilder(_Builder):
    __slots__ = ()

    def build(self) -> Node:
        return node_from_manifest(self._checked("Node"), strict=False)

    def offering(self, **amounts: str) -> Self:
        """Allocatable cpu, memory, pods, ephemeral_storage. For other resources, use `offering_also`."""
        return self.offering_also({name.replace("_", "-"): amount for name, amount in amounts.items()})

    def offering_also(self, amounts: Mapping[str, str]) -> Self:
        return self.with_field("status.allocatable", {**self.manifest["status"]["allocatable"], **amounts})

    def in_zone(self, zone: str) -> Self:
        return self.with_labels({"topology.kubernetes.io/zone": zone})

    def tainted(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        return self.with_field(
            "spec.taints", [*self.manifest["spec"].get("taints", []), {"key": key, "value": value, "effect": effect}]
        )

    def cordoned(self) -> Self:
        return self.with_field("spec.unschedulable", True)

    def with_image(self, *names: str, size_bytes: int) -> Self:
        return self.with_field(
            "status.images",
            [*self.manifest["status"].get("images", []), {"names": list(names), "sizeBytes": size_bytes}],
        )


class BudgetBuilder(_Builder):
    __slots__ = ()

    def build(self) -> DisruptionBudget:
        return budget_from_manifest(self._checked("PodDisruptionBudget"), strict=False)

    def selecting(self, **labels: str) -> Self:
        return self.with_field("spec.selector", {"matchLabels": labels})

    def allowing(self, evictions: int) -> Self:
        return self.with_field("status.disruptionsAllowed", evictions)


def manifests(*builders: _Builder | Sequence[_Builder]) -> list[Json]:
    """The API objects of several builders, ready for load_objects."""
    found: list[Json] = []
    for builder in builders:
        found.extend([builder.manifest] if isinstance(builder, _Builder) else [b.manifest for b in builder])
    return found
