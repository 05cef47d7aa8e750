"""Chooses the pods' first nodes with scheduler_core; a seed decides among equally good ones.

kube-scheduler chooses among them at random, which alone would make two roll-outs differ. It is stopped until every pod
is placed, and makes all later placements.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from scheduler_core.cycle import Scheduler
from scheduler_core.model.manifests.from_manifest import pod_from_manifest
from scheduler_core.snapshot.loading import load_objects
from tests.cluster.harness.api import Object
from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.workloads import SHOP

# The objects on which a decision about these workloads depends: collection -> kind and version, which lists omit in
# their items.
_LOOKED_AT = {
    "/api/v1/nodes": ("Node", "v1"),
    "/api/v1/pods": ("Pod", "v1"),
    "/api/v1/namespaces": ("Namespace", "v1"),
    "/apis/apps/v1/replicasets": ("ReplicaSet", "apps/v1"),
    "/apis/apps/v1/statefulsets": ("StatefulSet", "apps/v1"),
}


def places(
    objects: Iterable[Mapping[str, Any]], waiting: Sequence[Object], chance: random.Random
) -> list[tuple[Object, str]]:
    """The node of each pending pod, placed one after another. Pods with a node stay."""
    scheduler, snapshot = Scheduler(), load_objects(objects)
    placed = []
    for manifest in waiting:
        pod = pod_from_manifest(manifest)
        found = scheduler.schedule(snapshot, pod)
        assert found.node is not None, f"no node fits {pod.key}: {found.sentence}"
        node = chance.choice(sorted(found.best))
        snapshot = snapshot.with_pod_placed(pod, node)
        placed.append((manifest, node))
    return placed


def place_all(cluster: Cluster, workloads: Sequence[Object], seed: int) -> None:
    """Applies the workloads, binds their pods to the chosen nodes, and waits until all are ready."""
    chance = random.Random(f"placement {seed}")
    at_once = sum(
        {"Deployment": item["spec"].get("replicas", 0), "StatefulSet": 1}.get(item["kind"], 0) for item in workloads
    )
    order = [item["metadata"]["name"] for item in workloads]
    with _scheduler_stands_still(cluster):
        cluster.apply(*workloads)
        # All at once and in one order, otherwise the random choices would depend on the controllers' timing. Only a
        # StatefulSet's later pods come one by one, each when the previous one is ready.
        cluster.wait_for("the controllers have created all pods", lambda: len(_waiting(cluster, order)) == at_once, 180)

        def next_ones_placed() -> bool:
            for pod, node in places(_objects(cluster), _waiting(cluster, order), chance):
                _bind(cluster, pod["metadata"]["name"], node)
            return cluster.pods_are_ready()

        cluster.wait_for("every pod is placed and ready", next_ones_placed, 180)


@contextmanager
def _scheduler_stands_still(cluster: Cluster) -> Iterator[None]:
    scheduler = cluster.plane.program("scheduler")
    scheduler.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        scheduler.signal(signal.SIGCONT)


def _waiting(cluster: Cluster, order: Sequence[str]) -> list[Object]:
    """The pending pods in the order of their workloads. The order within a workload does not matter: its pods are
    equal."""
    pods = [pod for pod in cluster.admin.list(f"/api/v1/namespaces/{SHOP}/pods") if not pod["spec"].get("nodeName")]
    return sorted(pods, key=lambda pod: order.index(pod["metadata"]["labels"]["app"]))


def _objects(cluster: Cluster) -> list[Object]:
    found = [
        {**item, "kind": kind, "apiVersion": version}
        for path, (kind, version) in _LOOKED_AT.items()
        for item in cluster.admin.list(path)
    ]
    return [item for item in found if item["kind"] != "Pod" or item["spec"].get("nodeName")]


def _bind(cluster: Cluster, pod: str, node: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    cluster.admin.create(f"/api/v1/namespaces/{SHOP}/pods/{pod}/binding", body)
