"""Which of the recorded DaemonSets still want a pod on this node. Imported only when such a pod is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from urllib.parse import quote

import msgspec

from careen.cluster.objects import Meta
from careen.cluster.wire.answers import refuse_others
from careen.cluster.wire.api import ClusterApi
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import OwnerHealth
from scheduler_core.model.labels import OneNode, chosen
from scheduler_core.model.manifests import wire
from scheduler_core.model.manifests.fields import node_affinity
from scheduler_core.values import replace_value as replace


class _Affinity(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    node_affinity: wire.WireNodeAffinity | None = None


class _Spec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None


class _Template(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    spec: _Spec = _Spec()


class _DaemonSetSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    template: _Template = _Template()


class PlacingDaemonSet(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """What decides on which nodes its pods may run."""

    metadata: Meta
    spec: _DaemonSetSpec = _DaemonSetSpec()


async def read_daemon_sets(api: ClusterApi, recorded: Iterable[OwnerHealth], node: NodeView) -> tuple[OwnerHealth, ...]:
    """Those of the recorded DaemonSets that exist; `replicas` is 0 if the DaemonSet no longer selects the node. Raises
    `ClusterError`."""
    found = await asyncio.gather(*(_read(api, row) for row in recorded))
    return tuple(
        replace(row, replicas=int(_selects(each, node)), ready=0)
        for row, each in zip(recorded, found, strict=True)
        if each is not None
    )


async def _read(api: ClusterApi, row: OwnerHealth) -> PlacingDaemonSet | None:
    """By a list of one name, because the agent may list DaemonSets and not get them."""
    path = f"/apis/apps/v1/namespaces/{quote(row.namespace, safe='')}/daemonsets"
    listed = await api.items(path, PlacingDaemonSet, query={"fieldSelector": f"metadata.name={row.name}"})
    refuse_others((f"DaemonSet {each.metadata.name}" for each in listed if each.metadata.name != row.name), path)
    return next(
        (each for each in listed if each.metadata.uid == row.uid and each.metadata.deletion_timestamp is None), None
    )


def _selects(daemon_set: PlacingDaemonSet, node: NodeView) -> bool:
    """By node selector and required node affinity. Taints do not count: a taint that keeps the pod away may be the
    fault itself."""
    spec = daemon_set.spec.template.spec
    written = spec.affinity.node_affinity if spec.affinity is not None else None
    required = node_affinity(written).required if written is not None else None
    return chosen(OneNode(node.labels, node.name), (spec.node_selector or {}).items(), required)
