"""Measures how often forecasts are right on a real control plane: `make bench-accuracy`.

Clusters are generated from seeds (tests/cluster/harness/measures/varied.py). Each node's drain is forecast, then really
done and ended by an uncordon; then the nodes of the moved pods are compared with the forecast. The tables differ in the
program that drains, or in the scheduler's configuration.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.cluster.harness.machines.control_plane import SCHEDULER_SETTINGS, ControlPlane, a_control_plane
from tests.cluster.harness.measures.accuracy import Score, score
from tests.cluster.harness.measures.drains import Drainer, Engine, apply, careen_engine, kubectl_engine, sweep
from tests.cluster.harness.measures.varied import NAMESPACE, VariedCluster, varied_cluster

INTRODUCTION = """# How often forecasts are right, measured

Written by `make bench-accuracy` on {cores} cores. Each seed gives a cluster on a real control plane. For
each node, the bench makes a forecast, then drains the node, then uncordons it. *In order*: drains in which evictions
and replacements came in the order that forecasts assume. *Inside the set*: pods that got one of the nodes that the
forecast names. *Single best*: pods whose forecast named only one node. *Got the single best node*: pods that really got
this node. *Mean set*: the mean number of nodes that a forecast names for a pod. *Superseded*: pods that had no
replacement when the node was uncordoned. For example, a Job waits longer after each eviction, so a later drain may
begin before the Job creates the replacement. The figures of the later drain leave this replacement out. *Pending* has
two figures. *Forecast*: pods that, according to the forecast, find no room before the reboot is over. *Real*: new pods
that had no node when the drained node was uncordoned."""

HEADER = (
    "cluster",
    "drains",
    "in order",
    "pods",
    "inside the set",
    "single best",
    "got the single best node",
    "got the single best node (only the drains counted in the column *in order*)",
    "mean set",
    "superseded",
    "pending: forecast, real",
)
DEFAULT_SCHEDULER = {
    key: value for key, value in SCHEDULER_SETTINGS.items() if key not in ("parallelism", "percentageOfNodesToScore")
}
ENGINES: Mapping[str, tuple[str, Engine, Mapping[str, Any]]] = {
    "careen": ("careen's drain, scheduler with parallelism 1 and percentage 100", careen_engine(), SCHEDULER_SETTINGS),
    "default": ("careen's drain, default scheduler", careen_engine(), DEFAULT_SCHEDULER),
    "ten": (
        "careen's drain with --drain-parallel=10, scheduler with parallelism 1 and percentage 100",
        careen_engine(10),
        SCHEDULER_SETTINGS,
    ),
    "kubectl": ("kubectl drain, scheduler with parallelism 1 and percentage 100", kubectl_engine(), SCHEDULER_SETTINGS),
}


def main() -> None:
    """One table per program that drains, such as `kubectl drain`: for each cluster, how many pods got a node that
    the forecast names."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--engine",
        action="append",
        choices=list(ENGINES),
        help="program that drains the nodes; repeatable; by default all programs",
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22, 23, 24, 25], help="a seed for each cluster")
    parser.add_argument("--drains", type=int, default=6, help="number of nodes to drain in each cluster")
    given = parser.parse_args()
    print(INTRODUCTION.format(cores=os.cpu_count()), flush=True)
    for name in given.engine or ENGINES:
        title, engine, scheduler = ENGINES[name]
        began = time.time()
        rows = list(measured(engine, scheduler, given.seeds, given.drains))
        print(
            f"\n## {title}\n",
            *table(rows),
            *misses(rows),
            f"\nThese drains took {time.time() - began:.0f} s.",
            sep="\n",
            flush=True,
        )


def measured(
    engine: Engine, scheduler: Mapping[str, Any], seeds: Sequence[int], drains: int
) -> Iterator[tuple[str, Score]]:
    """Per seed, the title of its cluster and the score of `drains` forecasts. All clusters use the same control
    plane, one after another."""
    with a_control_plane(
        "accuracy", lambda folder, guardian: ControlPlane(folder, guardian=guardian, scheduler=scheduler)
    ) as plane:
        for seed in seeds:
            cluster = varied_cluster(seed)
            yield f"{seed}: {len(cluster.nodes)} nodes", score_of(plane, engine, cluster, drains)


def score_of(plane: ControlPlane, engine: Engine, cluster: VariedCluster, drains: int) -> Score:
    """The score of the forecasts of `drains` nodes of the cluster, drained one after another."""
    apply(plane.admin, cluster.nodes)
    apply(plane.admin, cluster.workloads)
    drainer, result = Drainer(plane, engine), Score()
    drainer.settle()
    for node in random.Random(cluster.seed).sample(cluster.node_names, drains):
        scored = score(drainer.drain(node))
        result.add(scored)
        print(
            f"seed {cluster.seed}, node {node}: {scored.inside} of {scored.pods} pods got a node that the forecast "
            "names"
            f"{''.join(f'; {miss}' for miss in scored.misses)}",
            file=sys.stderr,
            flush=True,
        )
    sweep(plane.admin, NAMESPACE)
    return result


def table(rows: Sequence[tuple[str, Score]]) -> Iterator[str]:
    """A table in Markdown with the total in its last row."""
    total = Score()
    for _, each in rows:
        total.add(each)
    yield f"| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    for name, each in (*rows, ("all", total)):
        yield f"| {' | '.join((name, *_cells(each)))} |"


def _cells(each: Score) -> Iterator[str]:
    yield from (
        str(each.drains),
        str(each.drains_in_order),
        str(each.pods),
        share(each.inside, each.pods),
        str(each.single),
    )
    yield from (share(each.single_equal, each.single), share(each.single_equal_in_order, each.single_in_order))
    yield from (f"{each.mean_size:.2f}", str(each.superseded), f"{each.pending_said}, {each.pending_seen}")


def share(part: int, whole: int) -> str:
    """For example "3 of 4 (75.0 %)"."""
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "-"


def misses(rows: Sequence[tuple[str, Score]]) -> Iterator[str]:
    """Each wrong forecast with its reason, in Markdown."""
    found = [(name, miss) for name, each in rows for miss in each.misses]
    if found:
        yield "\nMisses:\n"
    for name, miss in found:
        named = " + ".join("|".join(nodes) for nodes in miss.said)
        yield (
            f"* {name.partition(':')[0]} {miss.node}, {miss.owner}: the forecast named {named}, but the pods got "
            f"{' + '.join(miss.went) or 'no node'}: {miss.reason}"
        )


if __name__ == "__main__":
    main()
