"""Whether more nodes of one kind help the pending pods, and how many are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from scheduler_core.arguments import expect
from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.model.pod import Pod
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value
from scheduler_core.what_if.node_template import NodeTemplate, new_nodes

# Only these plugins' verdicts on an empty node change with the number of nodes.
_COUNT_NODES: Final = frozenset({"PodTopologySpread", "InterPodAffinity"})
MOST: Final = 100
_GATES: Final = SchedulingGates()  # no node helps a pod that its owner holds back


class MoreNodes(Value, kw_only=True):
    """The result of adding `count` nodes to the cluster. `placed`: each placed pod's node, by pod key, in the order of
    placing. `refused`: each other pod's reason, usually the refusal by an empty new node, or, if no new node is empty,
    the scheduler's message for all nodes."""

    count: int
    new_names: tuple[str, ...] = ()
    placed: Mapping[str, str]
    refused: Mapping[str, Verdict]

    @property
    def on_new_nodes(self) -> int:
        """The number of pods that got one of the new nodes."""
        return sum(node in self.new_names for node in self.placed.values())


class NodesNeeded(Value, kw_only=True):
    """How many new nodes the pods need. `without`: the result without a new node. `best`: the result that places the
    most pods, with the fewest new nodes. `tried`: the largest number of new nodes that was tried."""

    without: MoreNodes
    best: MoreNodes
    tried: int

    @property
    def is_enough(self) -> bool:
        return not self.best.refused

    @property
    def helps(self) -> bool:
        """Whether some number of new nodes places more pods than the current nodes do."""
        return len(self.best.placed) > len(self.without.placed)


def with_more_nodes(
    scheduler: Scheduler, snapshot: Snapshot, pods: Sequence[Pod], template: NodeTemplate, count: int
) -> MoreNodes:
    """Places these pods one after another, the highest priority first, in the cluster with `count` more nodes. Preempts
    no pod, changes no snapshot. Raises ValueError if `count` is negative."""
    expect("scheduler", scheduler, Scheduler, instead="with_more_nodes(Scheduler(), snapshot, …)")
    expect("snapshot", snapshot, Snapshot, instead="with_more_nodes(Scheduler(), snapshot, …)")
    expect("template", template, NodeTemplate, instead="like_node(snapshot, name) or of_manifest(…)")
    if count < 0:
        raise ValueError(f"count is {count}: expected the number of nodes to add, 0 or more")
    made = tuple(new_nodes(template, count, snapshot))
    daemons = [(pod, node.name) for node, several in made for pod in several]
    world = snapshot.with_nodes_added([node for node, _ in made]).with_pods_placed(daemons)
    placed: dict[str, str] = {}
    left: list[Pod] = []
    for pod in sorted(pods, key=lambda pod: -pod.priority):
        node = _place(scheduler, world, pod)
        if node is None:
            left.append(pod)
        else:
            world, placed[pod.key] = world.with_pod_placed(pod, node), node
    names = tuple(node.name for node, _ in made)
    empty = next((name for name in names if name not in placed.values()), None)
    refused = {pod.key: _refusal(scheduler, world, pod, empty) for pod in left}
    return MoreNodes(count=count, new_names=names, placed=placed, refused=refused)


def nodes_needed(
    scheduler: Scheduler, snapshot: Snapshot, pods: Sequence[Pod], template: NodeTemplate, most: int = MOST
) -> NodesNeeded:
    """The smallest number of new nodes like the template that places every pod, or else the most pods.

    Tries every number from 0 upwards, because with more nodes fewer pods may find a node: topology spread over hosts
    also considers empty hosts. The pods never need more nodes than there are pods. Ends early if an empty new node
    refuses every remaining pod for a reason that more nodes do not change.
    """
    without = best = found = with_more_nodes(scheduler, snapshot, pods, template, 0)
    while found.refused and found.count < min(most, len(pods)) and not _is_in_vain(found):
        found = with_more_nodes(scheduler, snapshot, pods, template, found.count + 1)
        if len(found.placed) > len(best.placed):
            best = found
    last = found if not best.count and found.count else best
    return NodesNeeded(
        without=without,
        best=best if best.count or not last.count else _with_reasons_of(best, last),
        tried=found.count,
    )


def _with_reasons_of(best: MoreNodes, last: MoreNodes) -> MoreNodes:
    """`best` has no new nodes; its refused pods get the reasons of `last`, which has new nodes that did not help."""
    refused = {key: last.refused.get(key, verdict) for key, verdict in best.refused.items()}
    return MoreNodes(count=0, placed=best.placed, refused=refused)


def _is_in_vain(found: MoreNodes) -> bool:
    is_empty = len(set(found.placed.values()) & set(found.new_names)) < found.count
    return is_empty and not any(verdict.plugin in _COUNT_NODES for verdict in found.refused.values())


def _place(scheduler: Scheduler, world: Snapshot, pod: Pod) -> str | None:
    if not _GATES.pre_enqueue(pod).is_success:
        return None
    try:
        result = scheduler.schedule(world, pod)
    except NoProfileError:
        return None
    return None if result.unknown or result.error else result.node


def _refusal(scheduler: Scheduler, world: Snapshot, pod: Pod, empty: str | None) -> Verdict:
    """The pod's scheduling gates, the refusal by the empty new node `empty`, or else the scheduler's message for all
    nodes."""
    if not (gated := _GATES.pre_enqueue(pod)).is_success:
        return gated
    try:
        result = scheduler.schedule(world, pod)
    except NoProfileError as nobody:
        return Verdict(VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE, (str(nobody),))
    if result.prefilter is not None and not result.error:
        return result.prefilter
    if empty is not None and not (result.unknown or result.error):
        return result.statuses[empty]
    return Verdict(VerdictCode.UNSCHEDULABLE, (result.unknown or result.error or result.sentence,))
