"""Finds the returning pods: displaced pods that wait for the drained node, because no other node could ever run them.

A pod that could run elsewhere, with room there, is *pending*, and a drain must not make pods pending. Temporary states
of nodes do not count: a cordoned node, or one tainted because it is not ready, is schedulable. If a pod must run near a
returning pod, that one is taken to be back, so both wait for the reboot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from scheduler_core.cycle import Scheduler
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.verdict import VerdictCode
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.snapshot import Snapshot

# Set and lifted with a node's condition by the control plane (node lifecycle controller, cloud provider).
_PASSING_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


def who_returns(scheduler: Scheduler, world: Snapshot, drained: Sequence[str], pods: Sequence[Pod]) -> frozenset[str]:
    """The keys of the pods that can run only on a drained node. Each found one counts as running there again, so
    that pods which must run near it are found too."""
    some_day, left, back = _without_passing_troubles(world), list(pods), set[str]()
    while found := next(
        ((pod, node) for pod in left if (node := _only_place(scheduler, some_day, drained, pod))), None
    ):
        pod, node = found
        some_day = some_day.with_pod_placed(pod, node)
        left.remove(pod)
        back.add(pod.key)
    return frozenset(back)


def _only_place(scheduler: Scheduler, some_day: Snapshot, drained: Sequence[str], pod: Pod) -> str | None:
    """The drained node on which the pod fits; None also if another node can run the pod now or might later."""
    result = scheduler.schedule(some_day, pod)
    mine = set(drained)
    if not result.best or not set(result.best) <= mine:
        return None
    others = [
        name
        for name, verdict in result.statuses.items()
        if name not in mine and verdict.code is not VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE
    ]
    return result.node if all(_some_plugin_refuses_for_good(scheduler, some_day, pod, others)) else None


def _some_plugin_refuses_for_good(
    scheduler: Scheduler, world: Snapshot, pod: Pod, names: Sequence[str]
) -> Iterator[bool]:
    """For each node, whether some plugin refuses the pod there permanently. Runs every plugin: the first refusal may
    be temporary (no room) and a later one permanent (an unreachable volume)."""
    runner, state = scheduler.runner(pod), CycleState()
    runner.pre_filter(state, pod, NodeList(world, None, scheduler.rules))
    infos = (world.node_info(world.row(name), scheduler.rules) for name in names)
    for info in infos:
        yield any(
            verdict.code is VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE
            for verdict in runner.every_verdict(state, pod, info).values()
        )


def _without_passing_troubles(world: Snapshot) -> Snapshot:
    for node in world.nodes:
        if (sound := _sound(node)) != node:
            world = world.with_node_replaced(sound)
    return world


def _sound(node: Node) -> Node:
    lasting = tuple(taint for taint in node.taints if not taint.key.startswith(_PASSING_TAINTS))
    return (
        node
        if not node.unschedulable and lasting == node.taints
        else replace(node, unschedulable=False, taints=lasting)
    )
