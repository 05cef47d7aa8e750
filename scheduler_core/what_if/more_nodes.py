"""Whether more nodes of one kind help the pending pods, and how many are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from scheduler_core.arguments import checked, expect_count
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import Verdict
from scheduler_core.model.pod import Pod
from scheduler_core.plugins import IN_TREE
from scheduler_core.sentences import html_table
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value
from scheduler_core.what_if.fewest_nodes import room_needed
from scheduler_core.what_if.node_template import NodeTemplate, new_nodes
from scheduler_core.what_if.placing import Filled, Placer, has_only_known_plugins, result_for

# Only these plugins' verdicts on an empty node change with the number of nodes.
_COUNT_NODES: Final = frozenset({"PodTopologySpread", "InterPodAffinity"})
MOST: Final = 100
Counts = Sequence[tuple[NodeTemplate, int]]


class MoreNodes(Value, kw_only=True):
    """The result of adding `count` nodes to the cluster. `placed`: each placed pod's node, by pod key, in the order of
    placing. `refused`: each other pod's reason, usually the refusal by an empty new node, or, if no new node is empty,
    the scheduler's message for all nodes."""

    count: int
    new_names: tuple[str, ...] = ()
    placed: Mapping[str, str]
    refused: Mapping[str, Verdict]
    is_cut: bool = False  # not every pod was tried, because the result could no longer be of use

    def __repr__(self) -> str:
        return f"<MoreNodes count={self.count} placed={len(self.placed)} refused={len(self.refused)}>"

    def _repr_html_(self) -> str:
        """For notebooks: the placed pods with their nodes, then the others with their reasons."""
        rows = [*self.placed.items(), *((pod, verdict.message) for pod, verdict in self.refused.items())]
        return html_table(("pod", "node, or why none"), rows)

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

    def __repr__(self) -> str:
        return f"<NodesNeeded count={self.best.count} is_enough={self.is_enough} refused={len(self.best.refused)}>"

    def _repr_html_(self) -> str:
        """For notebooks: the best result."""
        return self.best._repr_html_()

    @property
    def is_enough(self) -> bool:
        return not self.best.refused

    @property
    def helps(self) -> bool:
        """Whether some number of new nodes places more pods than the current nodes do."""
        return len(self.best.placed) > len(self.without.placed)


@checked
def with_more_nodes(
    scheduler: Scheduler, snapshot: Snapshot, pods: Sequence[Pod], template: NodeTemplate, count: int
) -> MoreNodes:
    """Places these pods one after another, the highest priority first, in the cluster with `count` more nodes. Preempts
    no pod, changes no snapshot. Raises ValueError if `count` is negative."""
    expect_count("count", count, of="the number of nodes to add")
    return try_counts(Placer(scheduler, pods), snapshot, [(template, count)])


@checked
def nodes_needed(
    scheduler: Scheduler, snapshot: Snapshot, pods: Sequence[Pod], template: NodeTemplate, most: int = MOST
) -> NodesNeeded:
    """The smallest number of new nodes like the template that places every pod, or else the most pods.

    Tries every number from 0 upwards, because with more nodes fewer pods may find a node: topology spread over hosts
    also considers empty hosts. Leaves out the numbers that are certainly too small for the pods' requests. The pods
    never need more nodes than there are pods. Ends early if an empty new node refuses every remaining pod for a reason
    that more nodes do not change.
    """
    expect_count("most", most, of="the largest number of nodes to try")
    without = with_more_nodes(scheduler, snapshot, pods, template, 0)
    most = min(most, len(pods))
    if not without.refused or most < 1:
        return NodesNeeded(without=without, best=without, tried=0)
    placer = Placer(scheduler, pods)
    more_may_help = every_kind_may_fit(placer, snapshot, template)
    if more_may_help:
        enough = _first_enough(placer, snapshot, template, most)
        if enough is not None:
            return NodesNeeded(without=without, best=enough, tried=enough.count)
    best = found = without
    for count in range(1, most + 1):
        # Only a result with more pods than the best one is of use, or one that shows that more nodes do not help.
        at_least = len(best.placed) + 1 if more_may_help else 0
        found = try_counts(placer, snapshot, [(template, count)], at_least)
        best = found if len(found.placed) > len(best.placed) and not found.is_cut else best
        if not found.refused or (not more_may_help and _is_in_vain(found)):
            break
    if not best.count:
        last = try_counts(placer, snapshot, [(template, found.count)]) if found.is_cut else found
        best = _with_reasons_of(best, last)
    return NodesNeeded(without=without, best=best, tried=found.count)


def try_counts(placer: Placer, snapshot: Snapshot, counts: Counts, at_least: int = 0) -> MoreNodes:
    """Adds so many nodes like each template. Ends as soon as it is certain that fewer than `at_least` pods get a
    node."""
    world, names = with_new_nodes(snapshot, counts)
    filled = placer.fill(world, at_least)
    return _told(placer, filled, names)


def with_new_nodes(snapshot: Snapshot, counts: Counts) -> tuple[Snapshot, tuple[str, ...]]:
    """The cluster with the new nodes and their DaemonSet pods, and the names of the new nodes."""
    names: tuple[str, ...] = ()
    for template, count in counts:
        made = tuple(new_nodes(template, count, snapshot))
        daemons = [(pod, node.name) for node, several in made for pod in several]
        snapshot = snapshot.with_nodes_added([node for node, _ in made]).with_pods_placed(daemons)
        names += tuple(node.name for node, _ in made)
    return snapshot, names


def every_kind_may_fit(placer: Placer, snapshot: Snapshot, template: NodeTemplate) -> bool:
    """Whether for each of the pods only the rules that count nodes can refuse an empty new node, so that more nodes may
    always help. False if that is not certain."""
    world, (name,) = with_new_nodes(snapshot, [(template, 1)])
    return all(_may_fit(placer.scheduler, world, pod, name) for pod in placer.one_of_each_kind)


def _may_fit(scheduler: Scheduler, world: Snapshot, pod: Pod, empty: str) -> bool:
    spec = pod.spec
    if spec.has_claims_or_disks or spec.resource_claims or spec.is_left_out:
        return False
    if not has_only_known_plugins(scheduler, pod):
        return False
    result = result_for(scheduler, world, pod)
    if result is None or result.prefilter is not None:
        return False
    verdict = result.statuses[empty]
    # The first refusal is told, so the rules that count nodes must be the last ones.
    counting = [name in _COUNT_NODES for name in scheduler.runner(pod).plugins.by_point.get("filter", ())]
    return verdict.is_success or (verdict.plugin in _COUNT_NODES and counting == sorted(counting))


def may_ever_fit(scheduler: Scheduler, world: Snapshot, pod: Pod, empty: Sequence[str]) -> bool:
    """Whether one of these empty nodes takes the pod, or refuses it by a rule that counts nodes or that this library
    does not know. False: no number of such nodes helps."""
    result = result_for(scheduler, world, pod)
    if result is None or result.prefilter is not None:
        return False
    verdicts = [result.statuses[name] for name in empty]
    return any(each.is_success or each.plugin in _COUNT_NODES or each.plugin not in IN_TREE for each in verdicts)


def _first_enough(placer: Placer, snapshot: Snapshot, template: NodeTemplate, most: int) -> MoreNodes | None:
    world, names = with_new_nodes(snapshot, [(template, 1)])
    room = room_needed(placer.scheduler, world, names, placer.pods)
    for count in range(1, most + 1):
        if not room.is_too_little((count,)):
            found = try_counts(placer, snapshot, [(template, count)], len(placer.pods))
            if not found.is_cut:
                return found
    return None


def _told(placer: Placer, filled: Filled, names: tuple[str, ...]) -> MoreNodes:
    taken = set(filled.placed.values())
    empty = next((name for name in names if name not in taken), None)
    refused = placer.why_left(filled, empty)
    return MoreNodes(count=len(names), new_names=names, placed=filled.placed, refused=refused, is_cut=filled.is_cut)


def _with_reasons_of(best: MoreNodes, last: MoreNodes) -> MoreNodes:
    """`best` has no new nodes; its refused pods get the reasons of `last`, which has new nodes that did not help."""
    refused = {key: last.refused[key] if key in last.refused else best.refused[key] for key in best.refused}
    return replace_value(best, refused=refused)


def _is_in_vain(found: MoreNodes) -> bool:
    is_empty = len(set(found.placed.values()) & set(found.new_names)) < found.count
    return is_empty and not any(verdict.plugin in _COUNT_NODES for verdict in found.refused.values())
