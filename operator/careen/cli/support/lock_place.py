"""Finds the lock's DaemonSet for a caller that does not name it: that of manifests/, then kured's."""

from __future__ import annotations

from careen.cluster.lock_store import LockStore
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import Forbidden, NotFound

OURS = ("careen", "careen")
"""The namespace and the name of the DaemonSet that manifests/ installs."""

KUREDS = ("kube-system", "kured")
"""The default namespace and name of the DaemonSet (kured's). The settings define the same defaults, but to import the
settings is slow, so this file repeats the defaults. A test checks that both are equal."""


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
