"""How many new nodes generated clusters need: `nodes_needed`, and the estimate by cluster-autoscaler's binpacking rule.

    python -m bench.planner [--clusters 60] [--seed 1] [--nodes 4 40] [--pods 20 120] [--large 500]

The rule, as cluster-autoscaler documents its estimator: pods that fit on a node of the cluster are taken out, by the
scheduler's filters alone. The others are sorted by their share of a new node's cpu and memory, the largest first. Each
gets the first new node, beginning behind the last one chosen, on which the filters pass; if there is none, a node is
added, unless the last one is still empty. The filters are those of scheduler_core. `pending`: pods that kube-scheduler
would leave pending if so many nodes were added, because it spreads pods by score and does not sort them by size.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from scheduler_core import Pod, Scheduler, Snapshot, like_node, load_objects, nodes_needed, with_more_nodes
from scheduler_core.model.requests import CURRENT_RULES, incoming_requests
from scheduler_core.model.resources import CPU, MEMORY
from scheduler_core.testing.builders import a_node, a_pod, manifests
from scheduler_core.values import replace_value
from scheduler_core.what_if.more_nodes import with_new_nodes
from scheduler_core.what_if.node_template import NodeTemplate

ZONES = ("a", "b", "c")
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SHAPES = ("plain", "zones", "hosts", "apart", "together")


class PlannerCase(NamedTuple):
    snapshot: Snapshot
    pods: tuple[Pod, ...]
    template: NodeTemplate


class PlannerRow(NamedTuple):
    shape: str
    nodes: int
    pods: int
    planner: int
    is_enough: bool
    planner_seconds: float
    rule: int
    rule_seconds: float
    pending: int


def main() -> None:
    given = _arguments()
    scheduler, chance = Scheduler(), random.Random(given.seed)
    rows = []
    for number in range(given.clusters):
        shape = SHAPES[number % len(SHAPES)]
        rows.append(measured(scheduler, shape, drawn(chance, shape, given.nodes, given.pods)))
    print("# Nodes that pending pods need: the planner and cluster-autoscaler's rule\n")
    print(f"`make bench-planner`: {given.clusters} generated clusters, seed {given.seed}; seconds of processor time.\n")
    print("\n".join(_table(rows)))
    print("\n".join(_summary(rows)))
    if given.large:
        large = full(given.large)
        begun = process_time()
        found = nodes_needed(scheduler, large.snapshot, large.pods, large.template)
        seconds = process_time() - begun
        print(f"\n300 pods with a spread over zones on {given.large} nodes: {found!r} after {seconds:.1f} s.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, nargs=2, default=[4, 40])
    parser.add_argument("--pods", type=int, nargs=2, default=[20, 120])
    parser.add_argument("--large", type=int, default=500)
    return parser.parse_args()


# ---- clusters ----


def drawn(chance: random.Random, shape: str, nodes: Sequence[int], pods: Sequence[int]) -> PlannerCase:
    """Nodes that are mostly full, and pending pods of three workloads."""
    objects = []
    for number in range(chance.randint(*nodes)):
        name, zone = f"n{number}", ZONES[number % len(ZONES)]
        objects.append(
            a_node(name).offering(cpu="8", memory="32Gi", pods="110").with_labels({HOSTNAME: name, ZONE: zone})
        )
        for each in range(chance.randint(2, 6)):
            pod = a_pod(f"old-{number}-{each}").labelled(app=f"old{each % 3}").on(name)
            objects.append(pod.requesting(cpu=f"{chance.choice((500, 1000, 1500))}m", memory="2Gi"))
    snapshot = load_objects(manifests(*objects))
    return PlannerCase(snapshot, tuple(_pods(chance, shape, chance.randint(*pods))), like_node(snapshot, "n0"))


def full(nodes: int) -> PlannerCase:
    """Nodes without room, and 300 pods that spread over zones."""
    objects: list[Any] = []
    for number in range(nodes):
        labels = {HOSTNAME: f"n{number}", ZONE: ZONES[number % len(ZONES)]}
        objects.append(a_node(f"n{number}").offering(cpu="8", memory="32Gi", pods="110").with_labels(labels))
        objects.append(a_pod(f"old-{number}").on(f"n{number}").requesting(cpu="7500m", memory="2Gi"))
    snapshot = load_objects(manifests(*objects))
    spread = {"labelSelector": {"matchLabels": {"app": "new"}}, "maxSkew": 300}
    one = a_pod("new").labelled(app="new").owned_by("ReplicaSet", "new").requesting(cpu="1", memory="1Gi")
    pod = one.spread_over(ZONE, **spread).build()
    pods = tuple(replace_value(pod, name=f"new-{number}") for number in range(300))
    return PlannerCase(snapshot, pods, like_node(snapshot, "n0"))


def _pods(chance: random.Random, shape: str, count: int) -> Iterator[Pod]:
    sizes = [(chance.choice((250, 500, 1000, 2000, 3000)), chance.choice((1, 2, 4, 8))) for _ in range(3)]
    for number in range(count):
        app = number % len(sizes)
        cpu, memory = sizes[app]
        pod: Any = a_pod(f"new-{number}").labelled(app=f"new{app}").owned_by("ReplicaSet", f"new{app}")
        pod = pod.requesting(cpu=f"{cpu}m", memory=f"{memory}Gi")
        selector = {"app": f"new{app}"}
        if shape == "zones":
            pod = pod.spread_over(ZONE, labelSelector={"matchLabels": selector}, maxSkew=60)
        elif shape == "hosts":
            pod = pod.spread_over(HOSTNAME, labelSelector={"matchLabels": selector}, maxSkew=6)
        elif shape == "apart" and app == 0 and number < 30:
            pod = pod.away_from(HOSTNAME, selector)
        elif shape == "together" and app == 1:
            pod = pod.near(ZONE, {"app": "old0"})
        yield pod.build()


# ---- both answers ----


def measured(scheduler: Scheduler, shape: str, case: PlannerCase) -> PlannerRow:
    begun = process_time()
    needed = nodes_needed(scheduler, case.snapshot, case.pods, case.template)
    between = process_time()
    rule = estimate(scheduler, case)
    ended = process_time()
    told = with_more_nodes(scheduler, case.snapshot, case.pods, case.template, rule)
    return PlannerRow(
        shape=shape,
        nodes=len(case.snapshot.nodes),
        pods=len(case.pods),
        planner=needed.best.count,
        is_enough=needed.is_enough,
        planner_seconds=between - begun,
        rule=rule,
        rule_seconds=ended - between,
        pending=len(told.refused),
    )


def estimate(scheduler: Scheduler, case: PlannerCase) -> int:
    """The number of new nodes by the rule; of at most 100."""
    world, left = case.snapshot, []
    for pod in case.pods:
        node = _first_fit(scheduler, world, pod, world.node_names)
        if node is None:
            left.append(pod)
        else:
            world = world.with_pod_placed(pod, node)
    size = case.template.node.allocatable
    added: list[str] = []
    used: set[str] = set()
    last = 0
    for pod in sorted(left, key=lambda pod: -_share(pod, size)):
        node = _first_fit(scheduler, world, pod, (*added[last:], *added[:last]))
        if node is None:
            if (added and added[-1] not in used) or len(added) >= 100:
                continue  # an empty node refuses it
            world, (name,) = with_new_nodes(world, [(case.template, 1)])
            added.append(name)
            node = _first_fit(scheduler, world, pod, (name,))
        if node is not None:
            world, last = world.with_pod_placed(pod, node), added.index(node)
            used.add(node)
    return len(used)


def _first_fit(scheduler: Scheduler, world: Snapshot, pod: Pod, names: Sequence[str]) -> str | None:
    if not names:
        return None
    result = scheduler.schedule(world, pod, preempts=False)
    if result.prefilter is not None:
        return None
    return next((name for name in names if result.statuses[name].is_success), None)


def _share(pod: Pod, size: Any) -> float:
    wanted = incoming_requests(pod.spec, CURRENT_RULES)
    return sum(wanted.amount(name) / max(1, size.get(name, 0)) for name in (CPU, MEMORY))


# ---- the page ----


def _table(rows: Sequence[PlannerRow]) -> Iterator[str]:
    yield "| pods | nodes | pending pods | planner | seconds | rule | seconds | left pending with the rule's nodes |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        enough = "" if row.is_enough else " (not enough)"
        yield (
            f"| {row.shape} | {row.nodes} | {row.pods} | {row.planner}{enough} | {row.planner_seconds:.2f} "
            f"| {row.rule} | {row.rule_seconds:.2f} | {row.pending or ''} |"
        )
    yield ""


def _summary(rows: Sequence[PlannerRow]) -> Iterator[str]:
    fewer = sum(row.planner < row.rule for row in rows)
    more = [row for row in rows if row.planner > row.rule]
    short = sum(bool(row.pending) for row in more)
    yield f"* The same number of nodes in {sum(row.planner == row.rule for row in rows)} clusters, fewer in {fewer}."
    yield (
        f"* More in {len(more)}; in {short} of these, the scheduler would leave pods pending on the number of nodes "
        "that the rule finds enough."
    )
    yield (
        f"* Seconds, median and largest: {median(row.planner_seconds for row in rows):.2f} and "
        f"{max(row.planner_seconds for row in rows):.2f}; the rule {median(row.rule_seconds for row in rows):.2f} and "
        f"{max(row.rule_seconds for row in rows):.2f}."
    )


if __name__ == "__main__":
    main()
