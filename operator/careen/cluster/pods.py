"""Reads pods and their controllers, and, for --blocking-pods, the pods that forbid the reboot of more nodes than their
own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple
from urllib.parse import quote

from careen.cluster import objects
from careen.cluster.wire.answers import decoded, list_of, refuse_others
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import NotFound, Withheld
from careen.core.facts.observation import PlacedPod, PodView
from careen.core.facts.policy import BlockingPods, BlockingScope
from careen.core.facts.progress import OwnerHealth

PODS = "/api/v1/pods"

# Kinds with a desired number of ready pods. Others (DaemonSet, Node, custom ones) have no such number.
WORKLOAD_KINDS: dict[str, str] = {
    "ReplicaSet": "/apis/apps/v1/namespaces/{namespace}/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "ReplicationController": "/api/v1/namespaces/{namespace}/replicationcontrollers",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
}

# Up to this many owners of one kind in one namespace are read one by one; above that, one list is cheaper.
_SINGLE_READS = 2


class Owner(NamedTuple):
    """A controller of pods, as a pod's owner reference names it. Sorted by kind, namespace and name."""

    kind: str
    namespace: str
    name: str


async def list_pods_on(api: ClusterApi, node: str) -> tuple[PodView, ...]:
    """Every pod on the node, in all namespaces. Cheap: the server's cache has an index on `spec.nodeName`."""
    found = await api.items(PODS, objects.ManagedPod, query={"fieldSelector": f"spec.nodeName={node}"})
    refuse_others(
        (f"a pod on {pod.spec.node_name or 'no node'}" for pod in found if pod.spec.node_name != node),
        f"GET {PODS} of {node}",
    )
    return tuple(objects.pod_view(pod) for pod in found)


async def list_blocking_pods(api: ClusterApi, rules: Iterable[BlockingPods]) -> tuple[PlacedPod, ...]:
    """The pods that forbid the reboot of other nodes too: one request for each such entry of --blocking-pods, or for
    each of its namespaces. The server selects by labels. Raises `ClusterError`."""
    found: list[PlacedPod] = []
    for rule in rules:
        if rule.scope is not BlockingScope.NODE:
            for path in _paths(rule):
                query = {"labelSelector": rule.selector.text} if rule.selector.text else None
                listed = await api.items(path, objects.Pod, query=query)
                found += _blockers(rule, listed)
    return tuple(found)


def _paths(rule: BlockingPods) -> tuple[str, ...]:
    named = tuple(f"/api/v1/namespaces/{quote(namespace, safe='')}/pods" for namespace in rule.namespaces)
    return named or (PODS,)


def _blockers(rule: BlockingPods, listed: Iterable[objects.Pod]) -> Iterator[PlacedPod]:
    for pod in listed:
        view = objects.pod_view(pod)
        if rule.blocks(view.namespace, view.labels, view.annotations, phase=view.phase):
            yield PlacedPod(title=view.title, node=pod.spec.node_name or "", rule=rule.name)


async def read_controller(api: ClusterApi, namespace: str, name: str) -> Owner | None:
    """None if the pod does not exist or has no controller."""
    try:
        pod = await api.get(
            f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}", objects.ObjectHead
        )
    except NotFound:
        return None
    owner = objects.controller_of(pod.metadata)
    return Owner(owner.kind, namespace, owner.name) if owner.name else None


def owners_of(pods: Iterable[PodView]) -> frozenset[Owner]:
    """Without kinds whose ready and wanted replicas cannot be compared."""
    return frozenset(
        Owner(pod.owner_kind, pod.namespace, pod.owner_name) for pod in pods if pod.owner_kind in WORKLOAD_KINDS
    )


async def read_owners(api: ClusterApi, owners: Iterable[Owner]) -> tuple[OwnerHealth, ...]:
    """The health of each controller, without those that are gone or being deleted, that have no replicas, or that
    careen may not read."""
    wanted: dict[tuple[str, str], set[str]] = defaultdict(set)
    for owner in owners:
        if owner.kind in WORKLOAD_KINDS:
            wanted[owner.kind, owner.namespace].add(owner.name)
    found: list[OwnerHealth] = []
    for (kind, namespace), names in sorted(wanted.items()):
        try:
            workloads = await read_workloads(api, kind, namespace, names)
        except Withheld:
            continue
        found.extend(objects.owner_health(kind, each) for each in workloads if each.metadata.deletion_timestamp is None)
    return tuple(sorted(found, key=lambda health: (health.kind, health.namespace, health.name)))


async def places_of(
    api: ClusterApi, namespace: str, owner_uids: Collection[str], *, since: datetime
) -> dict[str, list[str]]:
    """The nodes of each controller's pods that were created at or after `since`, by the controller's UID; "" for a pod
    without a node.

    Page by page, because a namespace may have many pods.
    """
    places: dict[str, list[str]] = {uid: [] for uid in owner_uids}
    async for page in api.pages(f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"):
        for pod in decoded(page, list_of(objects.Pod), f"GET pods of {namespace}").items:
            owner = objects.controller_of(pod.metadata).uid
            made = pod.metadata.creation_timestamp
            if owner in places and made is not None and made >= since:
                places[owner].append(pod.spec.node_name or "")
    return places


async def read_workloads(api: ClusterApi, kind: str, namespace: str, names: set[str]) -> list[objects.Workload]:
    """The existing ones of these controllers. Raises `ClusterError`."""
    path = WORKLOAD_KINDS[kind].format(namespace=quote(namespace, safe=""))
    if len(names) > _SINGLE_READS:
        return [each for each in await api.items(path, objects.Workload) if each.metadata.name in names]
    found: list[objects.Workload] = []
    for name in sorted(names):
        try:
            found.append(await api.get(f"{path}/{quote(name, safe='')}", objects.Workload))
        except NotFound:
            continue
    return found
