"""Which pods would find room after a drain if the cluster had more nodes: the answer to `careen forecast --with-nodes`,
or a note in a forecast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from careen.agent.forecast.order import ForecastRequest, NodesToAdd
from scheduler_core.cycle import Scheduler
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.from_manifest import node_from_manifest
from scheduler_core.simulation.evicted.replacements import StaysBecause
from scheduler_core.snapshot.snapshot import Snapshot, UnknownNodeError
from scheduler_core.what_if.after_drain import after_drain, answer, suggestion
from scheduler_core.what_if.node_template import NodeTemplate, like_node, template_from_manifest


class NoTemplateError(ValueError):
    """The template for additional nodes is invalid: no Node has that name, or the manifest is not a Node."""


def nodes_asked(
    order: ForecastRequest, snapshot: Snapshot, scheduler: Scheduler, stays: StaysBecause
) -> dict[str, Any]:
    """Fields for the forecast's JSON: `moreNodes`, the effect of the requested nodes; otherwise `notes` with a sentence
    about nodes that would help, if any. Raises NoTemplateError."""
    import msgspec

    if order.more_nodes is not None:
        template = _template(order.more_nodes, snapshot, scheduler)
        after = after_drain(snapshot, order.nodes, scheduler, stays)
        return {"moreNodes": msgspec.to_builtins(answer(after, scheduler, template, order.more_nodes.count))}
    told = suggestion(after_drain(snapshot, order.nodes, scheduler, stays), scheduler)
    return {"notes": [told]} if told else {}


def _template(wanted: NodesToAdd, snapshot: Snapshot, scheduler: Scheduler) -> NodeTemplate:
    try:
        if wanted.manifest is not None:
            # A newer API server may have served a field that is unknown here.
            node = node_from_manifest(_with_a_name(wanted.manifest), strict=False)
            return template_from_manifest(snapshot, node, scheduler)
        return like_node(snapshot, wanted.name)
    except UnknownNodeError:
        raise NoTemplateError(f"there is no Node {wanted.name!r} among the {len(snapshot.nodes)} Nodes") from None
    except ManifestError as error:
        raise NoTemplateError(str(error)) from error


def _with_a_name(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """A node group's template has none."""
    metadata = manifest.get("metadata", {})
    return {**manifest, "metadata": {"name": "node", **metadata}} if isinstance(metadata, Mapping) else manifest
