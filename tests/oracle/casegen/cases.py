"""Generates cases. A case is a cluster and the pods for which kube-scheduler and scheduler_core choose a node. The
flavour of a case is its main topic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.oracle.casegen import claims, configurations, pods
from tests.oracle.casegen import nodes as machines
from tests.oracle.casegen import vocabulary as word
from tests.oracle.casegen.draw import Draw
from tests.oracle.casegen.flavours import FLAVOURS, Flavour
from tests.oracle.casegen.volumes import Storage


def case(seed: int, number: int) -> dict[str, Any]:
    """Returns the case with this number. The cases of one seed are independent of each other."""
    d = Draw(f"{seed}:{number}")
    names = list(FLAVOURS)
    name = d.choices(names, [FLAVOURS[flavour].weight for flavour in names])[0]
    return build(d, FLAVOURS[name], f"{name}-{seed}-{number:05}")


def large_case(seed: int, number: int, size: int) -> dict[str, Any]:
    """Returns a case with `size` nodes and a random flavour. It has fewer pods on each node than other cases."""
    d = Draw(f"{seed}:large:{number}")
    name, flavour = d.choice([(name, flavour) for name, flavour in FLAVOURS.items() if flavour.nodes[1] > 2])
    return build(
        d,
        replace(flavour, nodes=(size, size), pods_per_node=min(flavour.pods_per_node, 0.5)),
        f"large-{name}-{seed}-{number:05}",
    )


def build(d: Draw, flavour: Flavour, name: str) -> dict[str, Any]:
    """Returns a case with a random cluster. Its objects are nodes, namespaces, services, controllers, budgets, storage
    and pods.
    """
    count = d.randint(*flavour.nodes)
    width = max(2, len(str(count - 1)))
    nodes = [machines.node(d, f"n{i:0{width}}", tidy=flavour.tidy) for i in range(count)]
    node_names = [node["metadata"]["name"] for node in nodes]
    storage = Storage(d, nodes, wanted=flavour.volumes > 0.02, odd=flavour.without_plugins > 0)
    claimed: list[dict[str, Any]] = []
    placed = _placed(d, flavour, storage, nodes)
    pending = [pods.pod(d, flavour, storage, f"new{i}", node_names, placed=False) for i in range(4)]
    for pod in pending:
        if d.maybe(flavour.claims):
            claimed += claims.give_claim(d, pod, node_names)
    nominated = _nominated(d, flavour, storage, node_names, pending)
    found: dict[str, Any] = {
        "id": name,
        "objects": nodes + _surroundings(d) + storage.objects + claimed + placed + nominated + pending,
        "pods": [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pending],
    }
    if d.maybe(flavour.without_plugins):
        found["config"] = configurations.without_plugins(d)
    elif d.maybe(flavour.configuration):
        found["config"] = configurations.configuration(d, node_names)
        for pod in pending:
            if d.maybe(0.3) and len(found["config"]["profiles"]) > 1:
                pod["spec"]["schedulerName"] = "second-scheduler"
    return found


def _placed(d: Draw, flavour: Flavour, storage: Storage, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = [node["metadata"]["name"] for node in nodes]
    found = []
    for i in range(round(flavour.pods_per_node * len(nodes) * d.uniform(0.3, 1.7))):
        one = pods.settle(
            d,
            pods.pod(d, flavour, storage, f"run{i}", names, placed=True),
            d.choice(names) if not d.maybe(0.01) else "gone",
        )
        if d.maybe(flavour.resize):
            pods.resized(d, one)
        found.append(one)
    if flavour.full and d.maybe(flavour.full):
        found += _fillers(d, nodes)
        found += [
            pods.settle(d, pods.pod(d, flavour, storage, f"odd{i}", names, placed=True), d.choice(names))
            for i in range(len(nodes) // 3)
        ]
    return found


def _fillers(d: Draw, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns one to four pods for each node. These pods are so large that a node has no room for another pod of this
    size."""
    found: list[dict[str, Any]] = []
    per_node = d.randint(1, 4)
    for i, node in enumerate(nodes):
        room = node["status"]["allocatable"].get("cpu", "1")
        share = (int(room[:-1]) if room.endswith("m") else int(float(room) * 1000)) // per_node
        found += [
            pods.filler(
                d,
                f"fill{k * len(nodes) + i}",
                node["metadata"]["name"],
                {"cpu": f"{share - d.choice((0, 0, 50))}m", "memory": "256Mi"},
            )
            for k in range(per_node)
        ]
    return found


def _nominated(
    d: Draw, flavour: Flavour, storage: Storage, nodes: list[str], pending: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Returns extra pending pods. The list `pods` of the case does not contain these pods, so neither kube-scheduler
    nor scheduler_core chooses nodes for them. Most of these pods are nominated for a node and reserve room there. Also
    nominates some of the pods in `pending`, for which kube-scheduler and scheduler_core choose nodes."""
    for pod in pending:
        if d.maybe(flavour.nominated * 0.5):
            pod["status"]["nominatedNodeName"] = d.choice(nodes)
    found = []
    for i in range(d.randint(1, 4) if d.maybe(flavour.nominated) else 0):
        one = pods.pod(d, flavour, storage, f"promised{i}", nodes, placed=True)
        if not d.maybe(0.15):  # otherwise: pending without a nomination, which must change nothing
            one["status"]["nominatedNodeName"] = d.choice(nodes)
        found.append(one)
    return found


def _surroundings(d: Draw) -> list[dict[str, Any]]:
    """Returns namespaces, services, controllers and budgets."""
    found: list[dict[str, Any]] = []
    for namespace in word.NAMESPACES:
        labels = d.choice(({"team": "red"}, {"team": "blue"}, {}))
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace} | ({"labels": labels} if labels else {}),
            }
        )
        for app in word.APPS:
            if d.maybe(0.2):
                found.append(_service(d, namespace, app))
            if d.maybe(0.3):
                found.append(_controller(d, namespace, app))
    return found + [_budget(d, f"pdb{i}") for i in range(d.choice((0, 0, 1, 2, 3)))]


def _service(d: Draw, namespace: str, app: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"selector": {"app": app} | ({"tier": "x"} if d.maybe(0.2) else {})}
    if d.maybe(0.06):
        spec = d.choice(({}, {"selector": {}}))
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"svc-{app}", "namespace": namespace},
        "spec": spec,
    }


def _controller(d: Draw, namespace: str, app: str) -> dict[str, Any]:
    api, kind = d.choice((("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController")))
    selector: Any = {"app": app}
    if kind != "ReplicationController":
        selector = (
            {"matchLabels": selector}
            if d.maybe(0.8)
            else {
                "matchExpressions": [
                    {"key": "app", "operator": "In", "values": [app]},
                    {"key": "track", "operator": "DoesNotExist"},
                ]
            }
        )
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 2, "selector": selector, "template": template} | (
        {"serviceName": "s"} if kind == "StatefulSet" else {}
    )
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": f"own-{app}", "namespace": namespace, "uid": f"{kind}-{namespace}-{app}"},
        "spec": spec,
    }


def _budget(d: Draw, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    selector = word.label_selector(d)
    if selector is not None:
        spec["selector"] = selector
    status: dict[str, Any] = {
        "disruptionsAllowed": d.choice((0, 0, 1, 2)),
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "expectedPods": 3,
    }
    if d.maybe(0.15):
        status["disruptedPods"] = {f"fill{d.randint(0, 9)}": "2026-01-01T02:00:00Z"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": d.often(("default",), word.NAMESPACES, 0.4)},
        "spec": spec,
        "status": status,
    }
