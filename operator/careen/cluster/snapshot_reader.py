"""Reads everything that kube-scheduler considers, as raw pages, from which scheduler_core builds a `Snapshot`.

Pages are passed on and not kept. Kinds that no pod refers to are not listed: a cluster without volumes or devices costs
nine requests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import msgspec

from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import Expired, NotFound, NotServed

T = TypeVar("T")

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"

# Needed for every pod: namespace selectors, default spread constraints, budgets.
ALWAYS = (
    NODES,
    PODS,
    "/api/v1/namespaces",
    "/api/v1/services",
    "/api/v1/replicationcontrollers",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/policy/v1/poddisruptionbudgets",
)

# Needed only for pods with claims on volumes.
VOLUMES = (
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/volumeattachments",
)

# Needed only for pods with claims on devices; served as v1 since 1.34, as betas before.
DEVICE_VERSIONS = ("v1", "v1beta2", "v1beta1")
DEVICES = ("/apis/resource.k8s.io/{version}/resourceclaims", "/apis/resource.k8s.io/{version}/deviceclasses")

# Needed only for pods of Jobs: whether the Job replaces an evicted pod.
JOBS = ("/apis/batch/v1/jobs",)

# Keys in the JSON of a pod. A pod that has one of these words in an annotation costs some requests, no more.
_ON_REFERENCE = (
    ((b'"Job"',), JOBS),
    ((b'"persistentVolumeClaim"', b'"ephemeral"'), VOLUMES),
    ((b'"resourceClaims"',), DEVICES),
)


async def again_if_expired(read: Callable[[], Awaitable[T]]) -> T:
    """Calls `read`, which reads all lists, once more if one expires between two pages (410): pages of two reads cannot
    be combined."""
    try:
        return await read()
    except Expired:
        return await read()


async def pages(api: ClusterApi) -> AsyncIterator[bytes]:
    """Raw list bodies, nodes first. Raises `ClusterError` if any list fails: an incomplete snapshot would give a wrong
    forecast."""
    referred: set[str] = set()
    for path in ALWAYS:
        async for page in api.pages(path):
            if path == PODS:
                referred.update(_referred_to(page))
            yield page
    for path in (path for _, paths in _ON_REFERENCE for path in paths if path in referred):
        async for page in _served_pages(api, path):
            yield page


def _referred_to(page: bytes) -> set[str]:
    """The lists whose objects the pods of this page may refer to."""
    return {path for marks, paths in _ON_REFERENCE if any(mark in page for mark in marks) for path in paths}


async def _served_pages(api: ClusterApi, path: str) -> AsyncIterator[bytes]:
    """The list's pages, in the first version that the server serves; none if it serves none."""
    if "{version}" not in path:
        async for page in api.pages(path):
            yield page
        return
    for version in DEVICE_VERSIONS:
        try:
            async for page in api.pages(path.format(version=version)):
                yield page
        except (NotFound, NotServed):
            continue
        return


class _Version(msgspec.Struct, gc=False, frozen=True, rename={"git_version": "gitVersion"}):
    git_version: str


async def server_version(api: ClusterApi) -> str:
    """The cluster's release, such as `v1.36.3`."""
    return (await api.get_plain("/version", _Version)).git_version
