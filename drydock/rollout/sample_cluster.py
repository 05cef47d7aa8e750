"""The demo's nodes, workloads and budgets. The same number of nodes gives the same cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Manifest = dict[str, Any]

NAMESPACE = "careen"
_ZONES = ("a", "b", "c")
_APPS = "shop"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWorkload:
    name: str
    kind: str
    replicas: int
    cpu: str
    memory: str
    # How many may be unavailable at once; None: no budget.
    unavailable: int | None = None
    pod_extra: Manifest = field(default_factory=dict)


def node_names(count: int) -> list[str]:
    width = max(2, len(str(count)))
    return [f"node-{i:0{width}d}" for i in range(1, count + 1)]


def sample_nodes(count: int) -> list[Manifest]:
    """Nodes in three zones. Of four or more, the first is a control-plane node without ordinary pods."""
    return [
        _node(name, index, is_control_plane=count >= 4 and index == 0) for index, name in enumerate(node_names(count))
    ]


def _node(name: str, index: int, *, is_control_plane: bool) -> Manifest:
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": _ZONES[index % len(_ZONES)],
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    spec: Manifest = {}
    if is_control_plane:
        labels["node-role.kubernetes.io/control-plane"] = ""
        spec["taints"] = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    info = {
        "kubeletVersion": "v1.36.0",
        "osImage": "Debian GNU/Linux 13 (trixie)",
        "kernelVersion": "6.12.0",
        "containerRuntimeVersion": "containerd://2.1.0",
        "architecture": "amd64",
        "operatingSystem": "linux",
        "machineID": f"{index:032x}",
        "systemUUID": f"{index:032x}",
        "kubeProxyVersion": "",
        "bootID": "",
    }
    status = {
        "capacity": capacity,
        "allocatable": capacity,
        "nodeInfo": info,
        "addresses": [
            {"type": "InternalIP", "address": f"10.0.{index // 250}.{index % 250 + 1}"},
            {"type": "Hostname", "address": name},
        ],
        "conditions": [{"type": "Ready", "status": "False", "reason": "NodeStatusNeverUpdated"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def sample_workloads(nodes: int) -> list[SampleWorkload]:
    """About three pods per node, which request less than half of the CPU, so all fit while two nodes are down.

    Those with anti-affinity leave two nodes without a replica, except in small clusters.
    """
    workers = nodes - 1 if nodes >= 4 else nodes
    api, db = max(2, workers // 2), 3 if workers >= 5 else 1
    return [
        SampleWorkload(
            name="web",
            kind="Deployment",
            replicas=workers,
            cpu="500m",
            memory="512Mi",
            unavailable=max(1, workers // 3),
            pod_extra=_spread_over_zones("web"),
        ),
        SampleWorkload(
            name="api",
            kind="Deployment",
            replicas=api,
            cpu="1",
            memory="1Gi",
            unavailable=max(1, workers // 5),
            pod_extra=_apart("api") if api + 2 <= workers else {},
        ),
        SampleWorkload(name="worker", kind="Deployment", replicas=workers, cpu="1", memory="2Gi"),
        SampleWorkload(
            name="cache",
            kind="Deployment",
            replicas=2,
            cpu="500m",
            memory="4Gi",
            unavailable=1,
            pod_extra=_rather_apart("cache"),
        ),
        SampleWorkload(
            name="db",
            kind="StatefulSet",
            replicas=db,
            cpu="1500m",
            memory="4Gi",
            unavailable=1,
            pod_extra=_apart("db") if db + 2 <= workers else {},
        ),
        SampleWorkload(name="cron", kind="Deployment", replicas=1, cpu="250m", memory="256Mi"),
    ]


def _spread_over_zones(app: str) -> Manifest:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": app}},
            }
        ]
    }


def _apart(app: str) -> Manifest:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_host_term(app)]}}}


def _rather_apart(app: str) -> Manifest:
    return {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": _host_term(app)}]
            }
        }
    }


def _host_term(app: str) -> Manifest:
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}


def sample_objects(nodes: int, agent_arguments: Sequence[str] = ()) -> Iterator[Manifest]:
    """All objects except Nodes, in the order of their creation. `agent_arguments` are for careen's DaemonSet."""
    for namespace in (NAMESPACE, _APPS):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    yield _agents(agent_arguments)
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "careen", "namespace": NAMESPACE}, "data": {}}
    yield daemon_set("node-exporter", "kube-system", "100m")
    for workload in sample_workloads(nodes):
        # On a single node a budget would wait for replicas that wait for the node: for ever.
        yield from _workload_objects(workload, has_budgets=nodes > 1)


def _agents(arguments: Sequence[str]) -> Manifest:
    """careen's DaemonSet. `careen config` and `careen forecast` read the agents' arguments there."""
    manifest = daemon_set("careen", NAMESPACE, "50m")
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    container |= {
        "args": ["agent", *arguments],
        "env": [{"name": "CAREEN_NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    }
    return manifest


def daemon_set(name: str, namespace: str, cpu: str) -> Manifest:
    """Runs on every node, also of the control plane."""
    template = _template(name, cpu, "64Mi", {"tolerations": [{"operator": "Exists"}]})
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def _workload_objects(workload: SampleWorkload, *, has_budgets: bool) -> Iterator[Manifest]:
    labels = {"app": workload.name}
    spec: Manifest = {
        "replicas": workload.replicas,
        "selector": {"matchLabels": labels},
        "template": _template(workload.name, workload.cpu, workload.memory, workload.pod_extra),
    }
    if workload.kind == "StatefulSet":
        spec["serviceName"] = workload.name
    yield {
        "apiVersion": "apps/v1",
        "kind": workload.kind,
        "metadata": {"name": workload.name, "namespace": _APPS},
        "spec": spec,
    }
    if workload.unavailable is not None and has_budgets:
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": workload.name, "namespace": _APPS},
            "spec": {"maxUnavailable": workload.unavailable, "selector": {"matchLabels": labels}},
        }


def _template(name: str, cpu: str, memory: str, pod_extra: Manifest) -> Manifest:
    container = {
        "name": "main",
        "image": f"registry.example/{name}:1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **pod_extra}}


def mirror_pods(node: Manifest, uid: str) -> Iterator[Manifest]:
    """The static pods of a control-plane node as mirror pods, which cannot be evicted."""
    if "node-role.kubernetes.io/control-plane" not in node["metadata"]["labels"]:
        return
    name = node["metadata"]["name"]
    for component in ("kube-apiserver", "etcd"):
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{component}-{name}",
                "namespace": "kube-system",
                "annotations": {"kubernetes.io/config.mirror": "static", "kubernetes.io/config.source": "file"},
                "ownerReferences": [owner],
            },
            "spec": {
                "nodeName": name,
                "priorityClassName": "system-node-critical",
                "containers": [{"name": "main", "image": f"registry.example/{component}:1"}],
                "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
            },
        }
