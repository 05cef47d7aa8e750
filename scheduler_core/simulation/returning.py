"""Which pending pods wait out the reboot: those that no other node could ever hold, however empty it were.

Load is not asked here: a pod that fits nowhere else only because the other nodes are full is pending, and a drain must not cause it.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import Code, Verdict
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.taints import first_untolerated
from scheduler_core.simulation.remedies import uncordoned
from scheduler_core.snapshot.snapshot import Snapshot

# Taints that the control plane sets and lifts with a node's condition say nothing about where a pod belongs.
_PASSING_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


def only_drained_nodes_can_hold(scheduler: Scheduler, world: Snapshot, drained: Sequence[str], pod: Pod) -> bool:
    """Whether the pod fits on a drained node once it is back, and every other node refuses it for good.

    Judged with nobody cordoned, because a cordon is lifted some day.
    """
    open_world = world
    for node in world.nodes:
        if node.unschedulable:
            open_world = open_world.with_node_replaced(uncordoned(node))
    result = scheduler.schedule(open_world, pod)
    mine = set(drained)
    if not result.best or not set(result.best) <= mine:
        return False
    return all(
        _is_for_good(verdict, world.node(name), pod) for name, verdict in result.statuses.items() if name not in mine
    )


def _is_for_good(verdict: Verdict, node: Node, pod: Pod) -> bool:
    if verdict.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return False
    if verdict.plugin != "TaintToleration":
        return True
    lasting = [taint for taint in node.taints if not taint.key.startswith(_PASSING_TAINTS)]
    return first_untolerated(lasting, pod.spec.tolerations) is not None
