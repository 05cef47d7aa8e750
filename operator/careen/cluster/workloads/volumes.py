"""Which volumes are still attached to a node. Imported only by agents of nodes that had volumes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import quote

import msgspec

from careen.cluster.objects import Meta
from careen.cluster.wire.answers import decoded, list_of
from careen.cluster.wire.api import ClusterApi
from careen.core.facts.observation import AttachedVolume, PodView

ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"


class _Source(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    persistent_volume_name: str = ""


class _AttachmentSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    node_name: str = ""
    source: _Source = _Source()


class Attachment(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """The object goes only when the volume is detached."""

    metadata: Meta
    spec: _AttachmentSpec


class _ClaimSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    volume_name: str = ""


class Claim(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    metadata: Meta
    spec: _ClaimSpec = _ClaimSpec()


async def read_attached(api: ClusterApi, node: str, staying: Iterable[PodView]) -> tuple[AttachedVolume, ...]:
    """The volumes with a VolumeAttachment to this node, and whether a pod that stays uses them. Page by page: no field
    selector knows the node. Raises `ClusterError`."""
    names: set[str] = set()
    async for page in api.pages(ATTACHMENTS):
        for each in decoded(page, list_of(Attachment), f"GET {ATTACHMENTS}").items:
            if each.spec.node_name == node:
                names.add(each.spec.source.persistent_volume_name or each.metadata.name)
    kept = await _volumes_of(api, staying) if names else frozenset()
    return tuple(AttachedVolume(name=name, stays=name in kept) for name in sorted(names))


async def _volumes_of(api: ClusterApi, pods: Iterable[PodView]) -> frozenset[str]:
    claims: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        claims[pod.namespace].update(pod.claims)
    found: set[str] = set()
    for namespace, names in sorted(claims.items()):
        if names:
            path = f"/api/v1/namespaces/{quote(namespace, safe='')}/persistentvolumeclaims"
            listed = await api.items(path, Claim)
            found.update(each.spec.volume_name for each in listed if each.metadata.name in names)
    return frozenset(found)
