"""Generates clusters from a seed: nodes of several sizes and kinds, and workloads with every rule that affects
placement.

The generator does not avoid clusters that are hard to forecast, and discards none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.cluster.harness.api import Object

NAMESPACE = "varied"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PRIORITIES = {"varied-low": 10, "varied-high": 1000}

_IMAGES = {
    f"example.com/{name}:1": megabytes * 2**20
    for name, megabytes in (("tiny", 9), ("web", 180), ("java", 740), ("model", 2300))
}
_DEDICATED = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
_SOFT = {"key": "careen.dev/reboot", "effect": "PreferNoSchedule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedCluster:
    """The manifests of a cluster in the order of their creation."""

    seed: int
    nodes: tuple[Object, ...]
    workloads: tuple[Object, ...]

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(node["metadata"]["name"] for node in self.nodes)


def varied_cluster(seed: int, size: int = 0, *, fill: float = 1.0, is_uniform: bool = False) -> VariedCluster:
    """Generate the cluster of this seed with `size` nodes, or with 8 to 14 nodes if `size` is 0. Its pods request 30 to
    70 % of the cpu, multiplied by `fill`. With `is_uniform`, all nodes are equal except for names and zones.
    """
    chance = random.Random(seed)
    nodes = tuple(_nodes(chance, size))
    nodes = tuple(_like(nodes[0], each) for each in nodes) if is_uniform else nodes
    wanted = fill * chance.uniform(0.3, 0.7) * sum(int(node["status"]["allocatable"]["cpu"]) for node in nodes)
    return VariedCluster(seed=seed, nodes=nodes, workloads=(*_preliminaries(), *_workloads(chance, wanted)))


# -- nodes


def _nodes(chance: random.Random, size: int) -> Iterator[Object]:
    zones = [f"zone-{letter}" for letter in "abcd"[: chance.randint(1, 4)]]
    sizes = chance.choice([[4], [8], [2, 4, 8], [4, 8, 16]])
    for number in range(size or chance.randint(8, 14)):
        cpus = chance.choice(sizes)
        labels = {"disk": chance.choice(["ssd", "hdd"]), "pool": chance.choice(["general", "general", "batch"])}
        taints = [taint for taint, odds in ((_DEDICATED, 0.08), (_SOFT, 0.2)) if chance.random() < odds]
        images = [image for image in _IMAGES if chance.random() < 0.5]
        zone = chance.choice(zones) if chance.random() < 0.3 else zones[number % len(zones)]
        yield node(
            f"v{number:0{len(str(max(10, size - 1)))}}",
            zone=zone,
            cpus=cpus,
            memory_gib=cpus * chance.choice([2, 4]),
            labels=labels,
            taints=taints,
            images=images,
        )


def _like(first: Object, each: Object) -> Object:
    own = {key: each["metadata"]["labels"][key] for key in (HOSTNAME, ZONE)}
    meta = {**each["metadata"], "labels": {**first["metadata"]["labels"], **own}}
    return {**each, "metadata": meta, "spec": {"taints": []}, "status": first["status"]}


def node(
    name: str, *, zone: str, cpus: int, memory_gib: int, labels: dict[str, str], taints: list[Object], images: list[str]
) -> Object:
    """Return the manifest of a Ready node with these properties."""
    amounts = {"cpu": str(cpus), "memory": f"{memory_gib}Gi", "pods": "60", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                HOSTNAME: name,
                ZONE: zone,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **labels,
            },
        },
        "spec": {"taints": taints},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}],
            "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}, {"type": "Hostname", "address": name}],
            "images": [{"names": [image], "sizeBytes": _IMAGES[image]} for image in images],
            "nodeInfo": {
                "bootID": name,
                "machineID": name,
                "systemUUID": name,
                "architecture": "amd64",
                "operatingSystem": "linux",
                "osImage": "simulated",
                "kernelVersion": "6.1.0",
                "kubeletVersion": "v1.36.3",
                "kubeProxyVersion": "v1.36.3",
                "containerRuntimeVersion": "kwok://0.8.0",
            },
        },
    }


# -- workloads


def _preliminaries() -> Iterator[Object]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    for name, value in PRIORITIES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }


def _workloads(chance: random.Random, wanted_cpus: float) -> Iterator[Object]:
    """Yield workloads that together request about `wanted_cpus`. A pod without requests counts as 50 millicores."""
    apps: list[str] = []
    while wanted_cpus > 0:
        name, replicas = f"app{len(apps):02}", chance.choice([1, 1, 2, 2, 3, 3, 4, 5, 6])
        millis = chance.choice([0, 50, 100, 100, 250, 250, 500, 500, 1000, 1500])
        kind = chance.choices(["Deployment", "StatefulSet", "Job"], [70, 20, 10])[0]
        yield _workload(kind, name, replicas, _template(chance, name, millis, apps), is_parallel=chance.random() < 0.4)
        if kind != "Job" and chance.random() < 0.4:
            yield _budget(name, 1 if chance.random() < 0.5 or replicas < 3 else 2)
        apps.append(name)
        wanted_cpus -= replicas * max(millis, 50) / 1000


def _workload(kind: str, name: str, replicas: int, template: Object, *, is_parallel: bool) -> Object:
    selector = {"matchLabels": {"app": name}}
    specs: dict[str, Object] = {
        "Deployment": {"replicas": replicas, "selector": selector},
        "StatefulSet": {
            "replicas": replicas,
            "selector": selector,
            "serviceName": name,
            "podManagementPolicy": "Parallel" if is_parallel else "OrderedReady",
        },
        "Job": {"parallelism": replicas, "completions": replicas, "backoffLimit": 100},
    }
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {**specs[kind], "template": template},
    }


def _budget(app: str, most: int) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": {"app": app}}, "maxUnavailable": most},
    }


def _template(chance: random.Random, app: str, millis: int, others: list[str]) -> Object:
    requests = {"cpu": f"{millis}m"} if millis else {}
    if chance.random() < 0.8:
        requests["memory"] = chance.choice(["32Mi", "128Mi", "256Mi", "512Mi", "1Gi"])
    container: dict[str, Any] = {
        "name": "app",
        "image": chance.choice([*_IMAGES, "example.com/nowhere:1"]),
        "resources": {"requests": requests},
    }
    if chance.random() < 0.05:
        port = chance.choice([7001, 7002])
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    spec: dict[str, Any] = {
        "containers": [container],
        "affinity": _affinity(chance, app, others),
        "terminationGracePeriodSeconds": 30,
    }
    spec["topologySpreadConstraints"] = list(_spread(chance, app))
    if chance.random() < 0.12:
        spec["nodeSelector"] = {"disk": chance.choice(["ssd", "hdd"])}
    if chance.random() < 0.25:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if chance.random() < 0.2:
        spec["priorityClassName"] = chance.choice(list(PRIORITIES))
    if chance.random() < 0.15:
        spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    annotations = {"tests/runs-for": "24h"}
    if chance.random() < 0.3:
        annotations["tests/stop-after"] = chance.choice(["1s", "2s", "3s"])
    return {
        "metadata": {"labels": {"app": app, "tier": chance.choice(["front", "back"])}, "annotations": annotations},
        "spec": spec,
    }


def _spread(chance: random.Random, app: str) -> Iterator[Object]:
    for key, when, odds in (
        (ZONE, "DoNotSchedule", 0.12),
        (ZONE, "ScheduleAnyway", 0.1),
        (HOSTNAME, "ScheduleAnyway", 0.12),
        (HOSTNAME, "DoNotSchedule", 0.06),
    ):
        if chance.random() < odds:
            yield {
                "topologyKey": key,
                "maxSkew": chance.choice([1, 1, 2]),
                "whenUnsatisfiable": when,
                "labelSelector": {"matchLabels": {"app": app}},
            }


def _affinity(chance: random.Random, app: str, others: list[str]) -> Object:
    affinity: Object = {}
    if chance.random() < 0.2:
        term = {
            "matchExpressions": [{"key": "pool", "operator": "In", "values": [chance.choice(["general", "batch"])]}]
        }
        affinity["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": chance.randint(1, 100), "preference": term}]
        }
    if chance.random() < 0.12:
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [_near(app, HOSTNAME)]}
    elif chance.random() < 0.15:
        preferred = {"weight": chance.randint(1, 100), "podAffinityTerm": _near(app, chance.choice([HOSTNAME, ZONE]))}
        affinity["podAntiAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
    if others and chance.random() < 0.12:
        preferred = {
            "weight": chance.randint(1, 100),
            "podAffinityTerm": _near(chance.choice(others), chance.choice([HOSTNAME, ZONE])),
        }
        affinity["podAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
    elif others and chance.random() < 0.05:
        affinity["podAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [_near(chance.choice(others), ZONE)]
        }
    return affinity


def _near(app: str, topology_key: str) -> Object:
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": {"app": app}}}
