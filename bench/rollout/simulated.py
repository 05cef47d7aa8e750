"""Simulates the roll-outs of `make bench-moved` many times, so that chance no longer hides the effects of the soft
taint and of the order of the nodes.

    python -m bench.rollout.simulated [--seeds 0 1 2 3 4 5] [--lots 20] [--asking 12]

A lot is one placement of the seed's pods and one random order of the nodes. Three roll-outs are simulated for each:
without the taint, with it, and with it in the order of careen's agents. With `--asking 6` only the first six nodes of
the random order need a reboot, so their pods can move to the other nodes. scheduler_core chooses the node of every
evicted pod as kube-scheduler would; budgets, timing and agents are left out.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle
from statistics import NormalDist, fmean, stdev
from typing import Any

from bench.rollout.placement import places
from bench.rollout.sample import NODE_MILLICPU, NODES, SampleFleet, sample
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Budget, ForecastPolicy, Order, Policy
from careen.plan.rollout_rules import RolloutRules
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.movable import movable_in_zone, movable_pods
from scheduler_core.simulation.rollout import simulate_rollout
from scheduler_core.simulation.rollout_parts.rules import Rules
from scheduler_core.simulation.timeline import Obstacle, Timeline
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot
from tests.cluster.harness.api import Object
from tests.cluster.harness.workloads import SHOP

BEGINS = datetime(2026, 1, 1, tzinfo=UTC)
READY = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.rollout.simulated",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4, 5])
    parser.add_argument(
        "--lots", type=int, default=20, help="number of random placements and orders of nodes for each seed"
    )
    parser.add_argument("--asking", type=int, default=NODES, help="how many of the nodes need a reboot")
    given = parser.parse_args()
    print(
        "| seed | no taint | taint | difference ± 95 % interval | taint, careen's order | difference ± 95 % interval "
        "|\n|---|---|---|---|---|---|"
    )
    everything: list[Lot] = []
    for seed in given.seeds:
        lots = [one_lot(sample(seed), lot, asking=given.asking) for lot in range(given.lots)]
        everything += lots
        print(row(str(seed), lots), flush=True)
    print(row("all", everything))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """Repeat moves (a pod is moved a second time) of three roll-outs from the same placement. `plain`: random order,
    no taint. `tainted`: the same order with the soft taint. `ordered`: careen's order with the soft taint."""

    plain: int
    tainted: int
    ordered: int


def one_lot(drawn: SampleFleet, lot: int, *, asking: int = NODES) -> Lot:
    """One roll-out per field of `Lot`. The number `lot` is a seed for the placement and for the random order."""
    chance = random.Random(f"lot {drawn.seed} {lot}")
    snapshot = placed(drawn, chance)
    names = [name for name, _ in drawn.places]
    chance.shuffle(names)
    drawn_order = names[:asking]
    return Lot(
        plain=repeat_moves(snapshot, drawn_order, InOrder(tuple(drawn_order)), taint_key=None),
        tainted=repeat_moves(snapshot, drawn_order, InOrder(tuple(drawn_order)), taint_key=keys.DEFAULT_TAINT_KEY),
        ordered=repeat_moves(snapshot, drawn_order, as_agents_go(snapshot), taint_key=keys.DEFAULT_TAINT_KEY),
    )


def as_agents_go(
    snapshot: Snapshot,
    *,
    order: Order = Order.OLDEST,
    at_once: int = 1,
    budgets: tuple[Budget, ...] = (),
    named: tuple[str, ...] = (),
) -> RolloutRules:
    """The order of careen's agents, with every need from the beginning and no refusing forecast."""
    views = [
        NodeView(name=node.name, uid=node.name, resource_version="", labels=node.labels) for node in snapshot.nodes
    ]
    return RolloutRules(
        views,
        Policy(node_name="any", forecast=ForecastPolicy.OFF, order=order, concurrency=at_once, budgets=budgets),
        named=named,
        moves=movable_pods(snapshot),
        moves_in_zone=movable_in_zone(snapshot),
    )


def repeat_moves(snapshot: Snapshot, asking: Sequence[str], rules: Rules, *, taint_key: str | None) -> int:
    return rolled_out(snapshot, asking, rules, taint_key=taint_key).double_moves


def rolled_out(
    snapshot: Snapshot,
    asking: Sequence[str],
    rules: Rules,
    *,
    taint_key: str | None = keys.DEFAULT_TAINT_KEY,
    scheduler: Scheduler | None = None,
) -> Timeline:
    """A simulated roll-out in which every node that asks reboots."""
    made = simulate_rollout(snapshot, asking, scheduler or Scheduler(), rules, begins=BEGINS, taint_key=taint_key)
    assert len(made.reboots) == len(asking), "the simulated roll-out did not finish"
    return made


def row(title: str, lots: Sequence[Lot]) -> str:
    """The mean of each kind of roll-out, and the differences with 95 % confidence intervals."""
    plain, tainted, ordered = (
        fmean(column)
        for column in ([lot.plain for lot in lots], [lot.tainted for lot in lots], [lot.ordered for lot in lots])
    )
    by_taint, by_order = (
        difference([lot.tainted - lot.plain for lot in lots]),
        difference([lot.ordered - lot.tainted for lot in lots]),
    )
    return f"| {title} | {plain:.1f} | {tainted:.1f} | {by_taint} | {ordered:.1f} | {by_order} |"


def difference(differences: Sequence[int]) -> str:
    half = (
        NormalDist().inv_cdf(0.975) * stdev(differences) / len(differences) ** 0.5
        if len(differences) > 1
        else float("nan")
    )
    return f"{fmean(differences):+.1f} ± {half:.1f}"


@dataclass(slots=True)
class InOrder:
    """So many nodes at once, in the given order; no node is kept from its reboot."""

    order: tuple[str, ...]
    at_once: int = 1
    at_work: set[str] = field(default_factory=set)

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:  # noqa: ARG002 - the port's signature
        return [name for name in self.order if name in waiting][:1] if len(self.at_work) < self.at_once else ()

    def claimed(self, node: str, at: datetime) -> None:  # noqa: ARG002 - the port's signature
        self.at_work.add(node)

    def released(self, node: str, at: datetime) -> None:  # noqa: ARG002 - the port's signature
        self.at_work.discard(node)

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None: ...
    def late_refusal(self, node: str, at: datetime) -> Obstacle | None: ...
    def next_opening(self, at: datetime) -> datetime | None: ...
    def next_closing(self, at: datetime) -> datetime | None: ...


def placed(drawn: SampleFleet, chance: random.Random, millicpu: Sequence[int] = (NODE_MILLICPU,)) -> Snapshot:
    """The seed's cluster after the scheduler has placed every pod. The nodes have these sizes by turns."""
    daemons = (pod for name, _ in drawn.places for pod in _daemons(drawn, name))
    objects = [*_nodes(drawn, millicpu), *daemons, *_owners(drawn)]
    waiting = [pod for item in drawn.workloads() if item["kind"] != "PodDisruptionBudget" for pod in _pods(item)]
    if not drawn.seed:
        # In the measured roll-out of the reference, the controllers create their pods at the same time, so the order of
        # the pods is random. For any other seed, `place_all` places the pods in a fixed order.
        chance.shuffle(waiting)
    bound = [{**pod, "spec": {**pod["spec"], "nodeName": node}} for pod, node in places(objects, waiting, chance)]
    return load_objects([*objects, *bound])


def _nodes(drawn: SampleFleet, millicpu: Sequence[int]) -> list[Object]:
    return [
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "uid": name,
                "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone},
            },
            "status": {**READY, "allocatable": {"cpu": f"{cpu}m", "memory": "32Gi", "pods": "110"}},
        }
        for (name, zone), cpu in zip(drawn.places, cycle(millicpu), strict=False)
    ]


def _owners(drawn: SampleFleet) -> list[Object]:
    """The owners, by which the scheduler spreads pods without spread constraints. A ReplicaSet, which owns the pods,
    stands for each Deployment."""
    return [
        {
            "kind": _owner_kind(item),
            "apiVersion": "apps/v1",
            "metadata": {**item["metadata"], "uid": item["metadata"]["name"]},
            "spec": item["spec"],
        }
        for item in drawn.workloads()
        if item["kind"] != "PodDisruptionBudget"
    ]


def _daemons(drawn: SampleFleet, node: str) -> list[Object]:
    return [
        _pod(item, f"{item['metadata']['name']}-{node}", nodeName=node)
        for item in drawn.daemons()
        if item["kind"] == "DaemonSet"
    ]


def _pods(item: Object) -> list[Object]:
    return [_pod(item, f"{item['metadata']['name']}-{number}") for number in range(item["spec"]["replicas"])]


def _pod(item: Object, name: str, **spec: Any) -> Object:
    template, owner = item["spec"]["template"], item["metadata"]["name"]
    reference = {"kind": _owner_kind(item), "apiVersion": "apps/v1", "name": owner, "uid": owner, "controller": True}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": name,
            "namespace": SHOP,
            "labels": template["metadata"]["labels"],
            "ownerReferences": [reference],
        },
        "spec": {**template["spec"], "schedulerName": "default-scheduler", **spec},
        "status": READY,
    }


def _owner_kind(item: Object) -> str:
    return "ReplicaSet" if item["kind"] == "Deployment" else str(item["kind"])


if __name__ == "__main__":
    main()
