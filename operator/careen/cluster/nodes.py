"""Reads and lists Nodes, and patches the agent's own. The patch carries the resourceVersion, so it overwrites no change
of another client."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

from careen.cluster import objects
from careen.cluster.wire.answers import decoded, list_of, refuse_others, the_page
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import NotFound
from careen.cluster.wire.writes import Written, write_guarded
from careen.core.actions import PatchNode
from careen.core.facts.keys import FIELD_MANAGER, REBOOT_LABEL, TAINT_MANAGER
from careen.core.facts.observation import Gone, NodeView, SignedNode, Taint
from careen.core.facts.selectors import Selector
from careen.core.losses import lacking

NODES = "/api/v1/nodes"
_NO_NAMES = ("", ".", "..")  # paths of other resources: an answer from there is not about a Node


async def read_node(api: ClusterApi, name: str) -> NodeView | Gone:
    """`Gone` by a consistent read."""
    if name in _NO_NAMES:
        return Gone()
    try:
        return objects.node_view(await api.get(_path(name), objects.ManagedNode))
    except NotFound:
        return Gone()


async def list_nodes(
    api: ClusterApi,
    *,
    reboot_label: Sequence[str] = (),
    selector: Selector | None = None,
    with_history: bool = False,
) -> tuple[NodeView, ...]:
    """All Nodes, those whose reboot label has one of these values, or those that match the selector. Consistent: never
    from an old cache."""
    wanted = _labelled(reboot_label) if reboot_label else selector.text if selector else ""
    query = {"labelSelector": wanted} if wanted else {}
    view = functools.partial(objects.node_view, all_annotations=with_history)
    found = tuple(await api.views(NODES, objects.Node, view, query=query))
    refuse_others(
        (
            f"Node {node.name}"
            for node in found
            if (reboot_label and node.labels.get(REBOOT_LABEL) not in reboot_label)
            or (selector is not None and not selector.matches(node.labels))
        ),
        f"GET {NODES}",
    )
    return found


async def list_signed_nodes(api: ClusterApi) -> tuple[SignedNode, ...]:
    """All Nodes with all annotations and with the field managers of labels and annotations. Consistent: all at the same
    moment, never from an old cache."""
    return tuple(objects.signed_node(node) for node in await api.items(NODES, objects.ManagedNode))


async def read_signed_node(api: ClusterApi, name: str) -> SignedNode | Gone:
    """The Node with its field managers; `Gone` by a consistent read."""
    try:
        return objects.signed_node(await api.get(_path(name), objects.ManagedNode))
    except NotFound:
        return Gone()


async def count_nodes(api: ClusterApi, *, reboot_label: Sequence[str], most: int) -> int | None:
    """How many Nodes have one of these values of the reboot label; None if more than `most`. One page only."""
    query, what = {"labelSelector": _labelled(reboot_label)}, f"GET {NODES}"
    async with aclosing(api.pages(NODES, query=query, page_size=most)) as pages:
        page = await anext(pages)
    return None if the_page(page, NODES, what) else len(decoded(page, list_of(objects.Node), what).items)


def _labelled(values: Sequence[str]) -> str:
    return f"{REBOOT_LABEL} in ({','.join(values)})"


async def patch_node(api: ClusterApi, name: str, patch: PatchNode) -> Written[NodeView]:
    """The server applies the whole patch, based on its resourceVersion, or nothing."""

    async def write(version: str) -> NodeView:
        return objects.node_view(
            await api.merge_patch(_path(name), merge_patch(patch, version), objects.ManagedNode, query=_manager(patch))
        )

    async def read() -> tuple[str, NodeView]:
        seen = objects.node_view(await api.get(_path(name), objects.ManagedNode))
        return seen.resource_version, seen

    return await write_guarded(
        version=patch.resource_version, write=write, read=read, stands=functools.partial(stands, patch)
    )


def stands(patch: PatchNode, node: NodeView) -> bool:
    """Whether the Node contains every part of the patch. Then the server has applied it: no other patch writes the same
    annotations. Taints of others may be there too: controllers and webhooks add theirs."""
    return not lacking(patch, node)


def _manager(patch: PatchNode) -> dict[str, str]:
    """A patch that cordons or taints has a field manager of its own, by which careen later recognises its change. For
    others the server uses the user agent's name."""
    if patch.adds_taint:
        return {"fieldManager": TAINT_MANAGER}
    return {"fieldManager": FIELD_MANAGER} if patch.unschedulable is not None else {}


def merge_patch(patch: PatchNode, version: str) -> dict[str, Any]:
    """The patch as JSON. A null removes a key, and `taints` replaces the whole list."""
    metadata: dict[str, Any] = {"resourceVersion": version}
    if patch.labels:
        metadata["labels"] = dict(patch.labels)
    if patch.annotations:
        metadata["annotations"] = dict(patch.annotations)
    spec: dict[str, Any] = {}
    if patch.taints is not None:
        spec["taints"] = [_taint(taint) for taint in patch.taints] or None
    if patch.unschedulable is not None:
        # The API leaves the field out when it is false, and kubectl writes null for the same reason.
        spec["unschedulable"] = True if patch.unschedulable else None
    return {"metadata": metadata, "spec": spec} if spec else {"metadata": metadata}


def _taint(taint: Taint) -> dict[str, str]:
    fields = {"key": taint.key, "effect": taint.effect, "value": taint.value, "timeAdded": taint.time_added}
    return {name: value for name, value in fields.items() if value is not None}


def _path(name: str) -> str:
    return f"{NODES}/{quote(name, safe='')}"
