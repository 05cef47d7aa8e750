"""`nodes_needed` written plainly: each number of nodes is tried in full, each pod by a whole cycle with preemption. The
reference for the faster one."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.model.pod import Pod
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.what_if.node_template import NodeTemplate, new_nodes

Answer = tuple[int, dict[str, str], dict[str, Verdict]]
_COUNT_NODES = {"PodTopologySpread", "InterPodAffinity"}
_GATES = SchedulingGates()


def needed_from_scratch(
    scheduler: Scheduler, snapshot: Snapshot, pods: Sequence[Pod], template: NodeTemplate, most: int
) -> tuple[Answer, Answer, int]:
    """Without new nodes, the best answer, and the largest number that was tried."""
    without = best = found = tried_from_scratch(scheduler, snapshot, pods, template, 0)
    while found[2] and found[0] < min(most, len(pods)) and not _is_in_vain(found, template):
        found = tried_from_scratch(scheduler, snapshot, pods, template, found[0] + 1)
        if len(found[1]) > len(best[1]):
            best = found
    if not best[0] and found[0]:
        best = (0, best[1], {key: found[2].get(key, verdict) for key, verdict in best[2].items()})
    return without, best, found[0]


def tried_from_scratch(
    scheduler: Scheduler, snapshot: Snapshot, pods: Sequence[Pod], template: NodeTemplate, count: int
) -> Answer:
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
    empty = next((node.name for node, _ in made if node.name not in placed.values()), None)
    return count, placed, {pod.key: _refusal(scheduler, world, pod, empty) for pod in left}


def _is_in_vain(found: Answer, template: NodeTemplate) -> bool:
    count, placed, refused = found
    used = {node for node in placed.values() if node.startswith(f"{template.name}-new-")}
    return len(used) < count and not any(verdict.plugin in _COUNT_NODES for verdict in refused.values())


def _place(scheduler: Scheduler, world: Snapshot, pod: Pod) -> str | None:
    if not _GATES.pre_enqueue(pod).is_success:
        return None
    try:
        result = scheduler.schedule(world, pod)
    except NoProfileError:
        return None
    return None if result.unknown or result.error else result.node


def _refusal(scheduler: Scheduler, world: Snapshot, pod: Pod, empty: str | None) -> Verdict:
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
