"""The default place where a command looks for the lock: the DaemonSet of manifests/, else kured's."""

from __future__ import annotations

from careen.cluster.lock_store import LockStore
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import Forbidden, NotFound

OURS = ("careen", "careen")
"""Namespace and name of the DaemonSet that manifests/ installs."""

KUREDS = ("kube-system", "kured")
"""The defaults of the settings, whose tree takes longer to load than a command to answer; a test holds them equal."""


async def find(api: ClusterApi, *, namespace: str | None, name: str | None, annotation: str) -> tuple[str, str]:
    """Namespace and name; what is given holds. Where no such DaemonSet exists, or none may be read, the first
    that it could be.

    Raises `ClusterError` when the server does not answer.
    """
    places = dict.fromkeys((namespace or space, name or own) for space, own in (OURS, KUREDS))
    first = next(iter(places))
    if namespace and name:
        return first
    for place in places:
        try:
            await LockStore(api, namespace=place[0], name=place[1], annotation=annotation).read()
        except (NotFound, Forbidden):
            continue
        return place
    return first
