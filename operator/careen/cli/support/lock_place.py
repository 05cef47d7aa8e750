"""Finds the lock's DaemonSet for a caller that does not name it: that of manifests/, then kured's."""

from __future__ import annotations

from careen.cluster.lock_store import LockStore
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import Forbidden, NotFound

OURS = ("careen", "careen")
"""The DaemonSet of manifests/."""

KUREDS = ("kube-system", "kured")
"""The settings' defaults, which are kured's. Repeated here because importing the settings is slow; a test compares
them."""


async def find(api: ClusterApi, *, namespace: str | None, name: str | None, annotation: str) -> tuple[str, str]:
    """The DaemonSet that carries the lock; a given namespace or name stays.

    Skips one that does not exist or may not be read; careen's if both are skipped. Raises `ClusterError` if the server
    does not answer.
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
