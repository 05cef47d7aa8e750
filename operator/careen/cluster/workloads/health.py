"""How healthy the workloads of displaced pods are, by their pods.

A workload's own status may be from before the evictions: its controller may be slow, or cut off from the API server. So
the status only begins a baseline, if it says that the workload is whole, and every other count lists the pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from urllib.parse import quote

from careen.cluster import objects
from careen.cluster.pods import WORKLOAD_KINDS, Owner, owners_of, read_owners
from careen.cluster.wire.answers import decoded, list_of
from careen.cluster.wire.api import ClusterApi
from careen.cluster.workloads.selectors import common, few_requests
from careen.core.facts.observation import PodView
from careen.core.facts.progress import OwnerHealth
from scheduler_core.simulation.evicted.understood import is_plain
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace


class _Count(Value, kw_only=True):
    """The pods of some controllers, by UID, that neither terminate nor have finished."""

    alive: Mapping[str, int]
    ready: Mapping[str, int]


async def read_now(api: ClusterApi, pods: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """The health of the owners of these pods, for the baseline. The pods of a workload that is not whole by its own
    status are counted: a status from a while ago would let it stay as bad as that. Raises `ClusterError`."""
    here = tuple(pods)
    found = await read_owners(api, owners_of(here))
    bad: dict[str, list[OwnerHealth]] = defaultdict(list)
    for row in found:
        if row.ready < row.replicas and row.kind != "Job":
            bad[row.namespace].append(row)
    ready: dict[str, int] = {}
    for namespace, rows in sorted(bad.items()):
        counted = await _counted(api, namespace, rows)
        ready.update({row.uid: counted.ready.get(row.uid, 0) for row in rows})
    known = {row.uid for row in found}
    return (
        *(replace(row, ready=ready.get(row.uid, row.ready)) for row in found),
        *await read_foreign(api, (pod for pod in here if pod.owner_uid not in known)),
    )


async def read_foreign(api: ClusterApi, pods: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """The health of those owners of the pods whose kinds careen does not know, by their pods. Raises `ClusterError`."""
    owners = {pod.owner_uid: pod for pod in pods if is_foreign(pod)}
    found: list[OwnerHealth] = []
    for namespace in sorted({pod.namespace for pod in owners.values()}):
        labels: dict[str, list[dict[str, str]]] = defaultdict(list)
        alive, ready = Counter[str](), Counter[str]()
        async for pod, owner, is_ready in _pods(api, namespace, ""):
            if owner in owners:
                labels[owner].append(pod.metadata.labels or {})
                alive[owner] += 1
                ready[owner] += is_ready
        found += [
            OwnerHealth(
                kind=owners[uid].kind_of_owner,
                namespace=namespace,
                name=owners[uid].owner_name,
                uid=uid,
                generation=0,
                replicas=alive[uid],
                ready=ready[uid],
                selector=common(labels[uid]),
            )
            for uid in sorted(alive)
        ]
    return tuple(found)


def is_foreign(pod: PodView) -> bool:
    """Whether the pod serves for a controller of a kind that careen cannot read. A pod that does a piece of work, such
    as a workflow's, ends and is not replaced."""
    return bool(pod.owner_kind) and not pod.is_work and not is_plain(pod.owner_kind, pod.owner_api_version)


async def read_again(
    api: ClusterApi, recorded: Iterable[OwnerHealth], *, since: datetime | None
) -> tuple[OwnerHealth, ...]:
    """The present health of the recorded workloads, and of others that took their place. A workload that is gone is
    missing. Raises `ClusterError`.

    A workload is read itself only if too few of its pods exist: a person may have scaled it down, deleted it, or
    rolled out another template.
    """
    namespaces: dict[str, list[OwnerHealth]] = defaultdict(list)
    for row in recorded:
        namespaces[row.namespace].append(row)
    found: list[OwnerHealth] = []
    for namespace, rows in sorted(namespaces.items()):
        found += await _of_namespace(api, namespace, rows, since)
    return tuple(found)


async def _of_namespace(
    api: ClusterApi, namespace: str, rows: list[OwnerHealth], since: datetime | None
) -> list[OwnerHealth]:
    counted = await _counted(api, namespace, rows)
    enough = [row for row in rows if counted.alive.get(row.uid, 0) >= row.ready]
    short = [row for row in rows if row not in enough]
    if any(row.kind not in WORKLOAD_KINDS and row.selector for row in short):
        counted = await _counted(api, namespace, [replace(row, selector="") for row in rows])
    now = [
        replace(row, ready=counted.ready.get(row.uid, 0), alive=counted.alive.get(row.uid, 0), containers=0)
        for row in rows
    ]
    readable = [row for row in short if row.kind in WORKLOAD_KINDS]
    if not readable:
        return now
    others = await _read_themselves(api, namespace, readable, counted, since)
    kept = [row for row in now if row.uid not in {each.uid for each in (*readable, *others)}]
    return [*kept, *others]


async def _read_themselves(
    api: ClusterApi, namespace: str, rows: list[OwnerHealth], counted: _Count, since: datetime | None
) -> list[OwnerHealth]:
    """The workloads as they are now. Those with fewer wanted pods than before are joined by the others of their parent,
    or, without a parent, by those without one that were created since the cordon."""
    found = {each.uid: each for each in await read_owners(api, [Owner(r.kind, namespace, r.name) for r in rows])}
    now = {row.uid: found[row.uid] for row in rows if row.uid in found}
    shrunk = [row for row in rows if row.uid not in now or now[row.uid].replicas < row.replicas]
    for kind in sorted({row.kind for row in shrunk}):
        parents = {row.parent for row in shrunk if row.kind == kind}
        path = WORKLOAD_KINDS[kind].format(namespace=quote(namespace, safe=""))
        for workload in await api.items(path, objects.Workload):
            health = objects.owner_health(kind, workload)
            takes_part = bool(health.parent) or _is_newer(workload.metadata, since)
            if workload.metadata.deletion_timestamp is None and health.parent in parents and takes_part:
                now[health.uid] = health
    if shrunk:
        counted = await _counted(api, namespace, [row for row in now.values() if row.replicas])
    return [replace(row, ready=counted.ready.get(row.uid, 0)) for row in now.values()]


def _is_newer(meta: objects.Meta, since: datetime | None) -> bool:
    return since is not None and meta.creation_timestamp is not None and meta.creation_timestamp >= since


async def _counted(api: ClusterApi, namespace: str, rows: list[OwnerHealth]) -> _Count:
    """The pods of these controllers. One without a selector costs a list of the namespace."""
    selectors = few_requests(row.selector for row in rows)
    alive, ready, seen = Counter[str](), Counter[str](), set[str]()
    for selector in ("",) if "" in selectors else selectors:
        async for pod, owner, is_ready in _pods(api, namespace, selector):
            if pod.metadata.uid not in seen:
                seen.add(pod.metadata.uid)
                alive[owner] += 1
                ready[owner] += is_ready
    return _Count(alive=alive, ready=ready)


async def _pods(api: ClusterApi, namespace: str, selector: str) -> AsyncIterator[tuple[objects.Pod, str, bool]]:
    """Each pod that neither terminates nor has finished, with its controller's UID and whether it is ready."""
    path, query = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods", {"labelSelector": selector}
    async for page in api.pages(path, query=query if selector else {}):
        for pod in decoded(page, list_of(objects.Pod), f"GET {path}").items:
            if pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Succeeded", "Failed"):
                yield pod, objects.controller_of(pod.metadata).uid, objects.is_ready(pod)
