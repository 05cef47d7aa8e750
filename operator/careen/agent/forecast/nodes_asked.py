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
from scheduler_core.simulation.forecast import NodesAnswer
from scheduler_core.snapshot.snapshot import Snapshot, UnknownNodeError
from scheduler_core.what_if.after_drain import AfterDrain, after_drain, answer, answer_of_several, suggestion
from scheduler_core.what_if.cheapest_mix import NodeOffer
from scheduler_core.what_if.node_template import NodeTemplate, like_node, template_from_manifest


class NoTemplateError(ValueError):
    """The template for additional nodes is invalid: no Node has that name, or the manifest is not a Node."""


def nodes_asked(
    order: ForecastRequest, snapshot: Snapshot, scheduler: Scheduler, stays: StaysBecause
) -> dict[str, Any]:
    """Fields for the forecast's JSON: `moreNodes`, the effect of the requested nodes; otherwise `notes` with a sentence
    about nodes that would help, if any. Raises NoTemplateError."""
    import msgspec

    if order.more_nodes:
        templates = [_template(each, snapshot, scheduler) for each in order.more_nodes]
        after = after_drain(snapshot, order.nodes, scheduler, stays)
        return {"moreNodes": msgspec.to_builtins(_answered(after, scheduler, order.more_nodes, templates))}
    told = suggestion(after_drain(snapshot, order.nodes, scheduler, stays), scheduler)
    return {"notes": [told]} if told else {}


def _answered(
    after: AfterDrain, scheduler: Scheduler, wanted: tuple[NodesToAdd, ...], templates: list[NodeTemplate]
) -> NodesAnswer:
    if len(wanted) == 1:
        return answer(after, scheduler, templates[0], wanted[0].count)
    offers = [NodeOffer(template=each, price=ask.price) for each, ask in zip(templates, wanted, strict=True)]
    try:
        return answer_of_several(after, scheduler, offers, [each.count for each in wanted])
    except ValueError as error:  # two templates of one name
        raise NoTemplateError(str(error)) from error


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
