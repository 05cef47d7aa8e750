"""The cluster of a simulated roll-out: nodes are drained, reboot and return, and pods move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.taints import PREFER_NO_SCHEDULE, Taint
from scheduler_core.simulation.drain import FinishedDrain, run_drain
from scheduler_core.simulation.evicted.evictions import BudgetLedger
from scheduler_core.simulation.evicted.replacements import StaysBecause
from scheduler_core.simulation.searches import Draw, Likely
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import replace_value


@dataclass(slots=True)
class SimulatedCluster:
    """The cluster after the drains and reboots so far. `returning` has each node that must reboot as it will be
    afterwards."""

    world: Snapshot
    returning: dict[str, Node]
    scheduler: Scheduler
    stays: StaysBecause
    draw: Draw
    searches: tuple[Likely, ...] = ()
    is_open: bool = False  # a random choice decided something
    _tried: tuple[Snapshot, str, FinishedDrain] | None = None  # the last drain, and the cluster in which it was run
    _ledger: tuple[tuple[DisruptionBudget, ...], BudgetLedger] | None = None  # of the last budgets

    def drained(self, name: str) -> FinishedDrain:
        """The result of a drain in the current cluster, which stays as it is."""
        if self._tried is None or self._tried[0] is not self.world or self._tried[1] != name:
            found = run_drain(
                self.world,
                [name],
                self.scheduler,
                with_details=False,
                stays=self.stays,
                searches=self.searches,
                draw=self.draw,
            )
            self._tried = (self.world, name, found)
            self.is_open = self.is_open or found.is_open
        return self._tried[2]

    def bars(self, name: str, pods: tuple[str, ...]) -> bool:
        """Whether one of these pods is on the node, and the budgets forbid its eviction whatever happens."""
        budgets = self.world.objects.budgets
        if self._ledger is None or self._ledger[0] is not budgets:
            self._ledger = (budgets, BudgetLedger(budgets))
        _, ledger = self._ledger
        here = (pod for pod in self.world.pods_on(name) if pod.key in pods)
        return any((no := ledger.refusal(pod)) is not None and no.is_never for pod in here)

    def take_over(self, drain: FinishedDrain) -> None:
        """The cluster after this drain becomes the current one. Each replacement with a node runs there, under the
        evicted pod's name."""
        self.world = drain.world.with_pods_exchanged(
            (each.replacement.key, _as_running(each.pod, each.replacement)) for each in drain.displaced if each.landed
        )
        self.searches = drain.searches

    def bring_back(self, name: str) -> None:
        """Back in service without the soft taint; cordoned only if it was so before the roll-out."""
        self.world = self.world.with_node_replaced(self.returning[name])

    def undo_drain(self, name: str) -> None:
        """Uncordons the node, unless it was cordoned before the roll-out. It keeps its soft taint, because it has
        not rebooted."""
        if not self.returning[name].unschedulable:
            self.world = self.world.with_node_uncordoned(name)

    def node_for(self, pod: Pod, now: datetime) -> str | None:
        """The node to which the scheduler would bind the pod; None if there is none, or if it is not known which
        one."""
        try:
            result = self.scheduler.schedule(self.world, pod)
        except NoProfileError:
            return None
        if result.node is None or result.unknown or result.error:
            return None
        self.is_open = self.is_open or len(result.best_rows) > 1 or result.sample is not None
        equals = (result.node, *(name for name in result.best if name != result.node))
        return equals[self.draw.among(len(equals), f"{pod.key} {now}")]

    def run_on(self, pod: Pod, replacement: Pod, node: str) -> None:
        """Runs the replacement of the evicted `pod` on the node as a healthy pod: each budget that counted the
        eviction allows one more."""
        self.world = self.world.with_pod_placed(_as_running(pod, replacement), node)
        ledger = BudgetLedger(self.world.objects.budgets)
        ledger.refill(pod)
        if (budgets := ledger.budgets()) != self.world.objects.budgets:
            self.world = self.world.with_objects(budgets=budgets)


def tainted(snapshot: Snapshot, names: Sequence[str], key: str | None) -> tuple[Snapshot, dict[str, Node]]:
    """Adds the soft taint with this key, or none. Also returns, by name, each node as it will be after its reboot."""
    nodes = {name: snapshot.node(name) for name in names}
    if key is None:
        return snapshot, nodes
    taint = Taint(key, "", PREFER_NO_SCHEDULE)
    without = [node for node in nodes.values() if taint not in node.taints]
    world = snapshot.with_nodes_replaced(replace(node, taints=(*node.taints, taint)) for node in without)
    returning = {
        name: replace(node, taints=tuple(each for each in node.taints if each != taint)) for name, node in nodes.items()
    }
    return world, returning


def _as_running(pod: Pod, replacement: Pod) -> Pod:
    """Running under the evicted pod's name, and ready if that was ready."""
    return replace_value(replacement, name=pod.name, uid=pod.uid, phase="Running", is_ready=pod.is_ready)
