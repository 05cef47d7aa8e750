"""Whether more nodes would help the pods that find no room when nodes are drained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from scheduler_core.arguments import checked
from scheduler_core.cycle import Scheduler
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.drain import run_drain
from scheduler_core.simulation.evicted.replacements import StaysBecause, moves_all
from scheduler_core.simulation.forecast import NodesAnswer
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value
from scheduler_core.what_if.cheapest_mix import NodeOffer, cheapest_mix
from scheduler_core.what_if.more_nodes import nodes_needed, try_counts, with_more_nodes
from scheduler_core.what_if.node_template import NodeTemplate, like_node
from scheduler_core.what_if.placing import Placer

# Nobody asked for a suggestion, so it must cost little compared with the forecast.
_MOST_SUGGESTED: Final = 3
# For each pod that fits nowhere, all nodes are searched for pods to preempt.
_MOST_PODS_TIMES_NODES: Final = 20_000
_MOST_TEMPLATES: Final = 4


class AfterDrain(Value):
    """The cluster after a drain. `homeless`: the pods without a node (replacements of evicted pods, and pods that were
    already pending), each with its name for messages."""

    world: Snapshot
    homeless: tuple[tuple[str, Pod], ...]
    drained: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<AfterDrain drained={list(self.drained)} homeless={len(self.homeless)}>"


@checked
def after_drain(
    snapshot: Snapshot, node_names: Sequence[str], scheduler: Scheduler, stays: StaysBecause = moves_all
) -> AfterDrain:
    """Drains these nodes together; of nodes with equal scores, the scheduler's own rule chooses. Raises
    UnknownNodeError if a node does not exist."""
    drain = run_drain(snapshot, node_names, scheduler, with_details=False, with_pending=True, stays=stays)
    homeless = tuple((each.pod.key, each.replacement) for each in drain.displaced if not (each.landed or each.unknown))
    return AfterDrain(drain.world, homeless, tuple(node_names))


def answer(after: AfterDrain, scheduler: Scheduler, template: NodeTemplate, count: int) -> NodesAnswer:
    """How many of the homeless pods would get a node if there were `count` more like the template, and how many new
    nodes would be enough for all."""
    pods = [pod for _, pod in after.homeless]
    found = with_more_nodes(scheduler, after.world, pods, template, count)
    needed = nodes_needed(scheduler, after.world, pods, template)
    titles = {pod.key: title for title, pod in after.homeless}
    return NodesAnswer(
        template=template.name,
        count=count,
        pods=len(pods),
        placed={titles[key]: node for key, node in found.placed.items()},
        refused={titles[key]: verdict.message for key, verdict in found.refused.items()},
        needed=needed.best.count if needed.is_enough else None,
        best_count=needed.best.count,
        best_placed=len(needed.best.placed),
        tried=needed.tried,
    )


def answer_of_several(
    after: AfterDrain, scheduler: Scheduler, offers: Sequence[NodeOffer], counts: Sequence[int]
) -> NodesAnswer:
    """The same for so many nodes of each offer together, and the cheapest nodes that are enough. Raises ValueError if
    two templates have the same name."""
    pods = [pod for _, pod in after.homeless]
    mix = cheapest_mix(scheduler, after.world, pods, offers)
    asked = list(zip((offer.template for offer in offers), counts, strict=True))
    found = try_counts(Placer(scheduler, pods), after.world, asked)
    titles = {pod.key: title for title, pod in after.homeless}
    count = sum(mix.counts.values())
    return NodesAnswer(
        template=", ".join(template.name for template, _ in asked),
        count=sum(counts),
        pods=len(pods),
        placed={titles[key]: node for key, node in found.placed.items()},
        refused={titles[key]: verdict.message for key, verdict in found.refused.items()},
        needed=count if mix.is_enough else None,
        best_count=count,
        best_placed=len(mix.result.placed),
        tried=mix.tried,
        added={template.name: number for template, number in asked},
        cheapest={name: number for name, number in mix.counts.items() if number},
        price=mix.price,
        is_cheapest=mix.is_cheapest,
    )


def suggestion(after: AfterDrain, scheduler: Scheduler) -> str:
    """ "one more node like node-07 would take all 3 pods that find no room": the first kind of node of which three or
    fewer are enough. "" if every pod finds room, if no kind is enough, or if the search would take long."""
    pods = [pod for _, pod in after.homeless]
    if not 0 < len(pods) <= _MOST_PODS_TIMES_NODES // max(1, len(after.world.nodes)):
        return ""
    for template in _templates(after):
        found = nodes_needed(scheduler, after.world, pods, template, _MOST_SUGGESTED)
        if found.is_enough and found.best.count:
            nodes = "one more node" if found.best.count == 1 else f"{found.best.count} more nodes"
            pods_without_room = (
                "the pod that finds no room" if len(pods) == 1 else f"all {len(pods)} pods that find no room"
            )
            return f"{nodes} like {template.name} would take {pods_without_room}"
    return ""


def _templates(after: AfterDrain) -> Iterator[NodeTemplate]:
    """At most four: a copy of the first drained node, then of one node of each size (allocatable resources and
    taints), the most common size first."""
    sizes: dict[object, list[str]] = {}
    for node in after.world.nodes:
        sizes.setdefault((frozenset(node.allocatable.items()), node.taints), []).append(node.name)
    common = sorted(sizes.values(), key=lambda names: (-len(names), names[0]))
    names = dict.fromkeys((*after.drained[:1], *(min(each) for each in common)))
    for name in list(names)[:_MOST_TEMPLATES]:
        yield like_node(after.world, name)
