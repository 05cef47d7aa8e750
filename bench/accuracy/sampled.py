"""How often forecasts are right where kube-scheduler looks at a part of the nodes: `make bench-accuracy-sampled`.

Clusters of 200 and 300 nodes are drawn from seeds that are chosen when the bench runs, and printed. The scheduler has
its default configuration. Its log says how many nodes each cycle evaluated, and so where the next search begins: the
same drains are forecast with that start too, to show what it would be worth to know it."""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.accuracy.__main__ import DEFAULT_SCHEDULER, misses, share
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.snapshot.loading import load_pages
from tests.cluster.harness.machines.control_plane import ControlPlane, a_control_plane
from tests.cluster.harness.measures.accuracy import Score, score
from tests.cluster.harness.measures.drains import Drainer, apply, careen_engine, sweep
from tests.cluster.harness.measures.varied import NAMESPACE, varied_cluster

INTRODUCTION = """# How often forecasts are right where the scheduler samples, measured

Written by `make bench-accuracy-sampled` on {cores} cores; seeds drawn with {seed}. Nodes of clusters with the default
scheduler are forecast, drained for real right afterwards on the real control plane, and given back. *Inside*: landed
in the set that holds 95 of 100 cases. *First*: on the node that was named first. *Known start*: the same model, told
where the scheduler's search begins."""
HEADER = ("cluster", "drains", "landings", "inside", "first", "mean set", "known start: inside", "mean set")
_EVALUATED = re.compile(rb'"Successfully bound pod to node".* evaluatedNodes=(\d+)')
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Pair:
    """One drain, as forecast, and as it is forecast by who knows the start."""

    said: Score
    told_start: Score


def main() -> None:
    """Prints a row for each cluster, then all together with an interval."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy.sampled",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[200, 300], help="of the clusters, in turn")
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--drains", type=int, default=3, help="nodes drained in each cluster")
    parser.add_argument("--seed", type=int, default=None, help="draws the clusters' seeds; otherwise drawn itself")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    print(INTRODUCTION.format(cores=os.cpu_count(), seed=seed), flush=True)
    began, chance = time.time(), random.Random(seed)
    rows: list[tuple[str, list[Pair]]] = []
    for number in range(given.clusters):
        size = given.nodes[number % len(given.nodes)]
        drawn = chance.randrange(10**6)
        rows.append((f"{drawn}: {size} nodes", list(_drained(drawn, size, given.drains))))
    print(
        *_table(rows),
        *misses([(name, _sum(each.said for each in pairs)) for name, pairs in rows]),
        f"\n{time.time() - began:.0f} s.",
        sep="\n",
        flush=True,
    )


def _drained(seed: int, size: int, drains: int) -> Iterator[Pair]:
    """On a control plane of its own, so that what its scheduler's log adds up to is this cluster's."""
    with a_control_plane(
        "sampled", lambda folder, guardian: ControlPlane(folder, guardian=guardian, scheduler=DEFAULT_SCHEDULER)
    ) as plane:
        cluster = varied_cluster(seed, size)
        apply(plane.admin, cluster.nodes)
        apply(plane.admin, cluster.workloads)
        drainer = Drainer(plane, careen_engine())
        drainer.settle()
        for node in random.Random(seed).sample(cluster.node_names, drains):
            start = _next_start(plane, size)
            drain = drainer.drain(node)
            (known,) = simulate_drain(load_pages(drain.pages), [node], made_at="", start=start)
            pair = Pair(score(drain), score(replace(drain, forecast=known)))
            print(f"{seed} {node}: {pair.said.inside} of {pair.said.pods} inside", file=sys.stderr, flush=True)
            yield pair
        sweep(plane.admin, NAMESPACE)


def _next_start(plane: ControlPlane, nodes: int) -> int:
    """A cycle that binds leaves the start as many places further as nodes it evaluated; one that fails saw all."""
    log = (plane.folder / "logs" / "scheduler.log").read_bytes()
    return sum(int(each[1]) for each in _EVALUATED.finditer(log)) % nodes


def _table(rows: Sequence[tuple[str, Sequence[Pair]]]) -> Iterator[str]:
    yield f"\n| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    pairs = [pair for _, each in rows for pair in each]
    for name, each in (*rows, ("all", pairs)):
        yield f"| {' | '.join((name, *_cells(each)))} |"
    low, high = _interval([pair.said for pair in pairs], random.Random(1))
    yield f"\nInside, resampled by drain: {low:.1f} to {high:.1f} % (95 of 100 resamples)."


def _cells(pairs: Sequence[Pair]) -> Iterator[str]:
    said, known = _sum(pair.said for pair in pairs), _sum(pair.told_start for pair in pairs)
    yield from (str(len(pairs)), str(said.pods), share(said.inside, said.pods), share(said.firsts, said.pods))
    yield from (f"{said.mean_size:.2f}", share(known.inside, known.pods), f"{known.mean_size:.2f}")


def _sum(scores: Iterator[Score]) -> Score:
    total = Score()
    for each in scores:
        total.add(each)
    return total


def _interval(scores: Sequence[Score], chance: random.Random) -> tuple[float, float]:
    """Landings of one drain depend on one another, so drains are drawn again and not landings."""
    shares = []
    for _ in range(_RESAMPLES):
        drawn = chance.choices(scores, k=len(scores))
        shares.append(100 * sum(each.inside for each in drawn) / max(1, sum(each.pods for each in drawn)))
    shares.sort()
    return shares[_RESAMPLES // 40], shares[-1 - _RESAMPLES // 40]


if __name__ == "__main__":
    main()
