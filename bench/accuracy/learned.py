"""Measures how well the start of kube-scheduler's search is learned from bindings: `make bench-accuracy-learned`.

The clusters, drains and records are those of `python -m bench.accuracy.sampled`. The bench chooses the clusters' seeds
when it runs, and prints them. It learns from the bindings of each drain in the order in which a watch shows them. After
twenty bindings, each drain is forecast twice: with and without what was learned. Both forecasts are compared with the
nodes on which the pods landed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.accuracy.__main__ import misses, share
from bench.accuracy.bindings import bindings, others
from bench.accuracy.drained import KINDS
from bench.accuracy.records import DrainRecord, paths, read
from bench.accuracy.sampled import begun, interval, record, seed_of, total
from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.learning.search_estimate import SearchEstimate
from scheduler_core.simulation.drain import most_searches, simulate_drain
from scheduler_core.snapshot.loading import load_pages
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import replace_value
from tests.cluster.harness.measures.accuracy import Score, score
from tests.cluster.harness.measures.drains import with_forecast

INTRODUCTION = """# What forecasts learn from bindings if the scheduler samples nodes, measured

Written by `make bench-accuracy-learned` on {cores} cores; the clusters' seeds were drawn with {seed}. Clusters,
drains and columns are those of [sampled.md](sampled.md). From the bindings of a cluster's earlier drains, the bench
learns where the scheduler's searches start. *Learned*: forecasts that use this knowledge. *Without*: forecasts of the
same drains without this knowledge. A drain counts only if the bench has seen at least {least} bindings before it."""
HEADER = (
    "cluster",
    "drains",
    "landings",
    "without: inside",
    "mean set",
    "learned: inside",
    "first",
    "mean set",
    "ratio",
)
LEAST_BINDINGS = 20


@dataclass(frozen=True, slots=True)
class LearnedPair:
    """Two forecasts of one drain: with and without what was learned from earlier bindings."""

    cluster: str
    without: Score
    learned: Score


def main() -> None:
    """One table per kind of cluster. Without --replay, first drains nodes and records that; a drain whose record
    exists is not repeated."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy.learned",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kind",
        action="append",
        choices=list(KINDS),
        help="kind of cluster; give this option once for each kind; without this option, the kind is `varied`",
    )
    parser.add_argument("--clusters", type=int, default=10, help="number of clusters of each kind")
    parser.add_argument("--drains", type=int, default=8, help="number of nodes to drain in each cluster")
    parser.add_argument(
        "--also", type=Path, action="append", help="a folder with earlier records, which are scored too; repeatable"
    )
    given, folder, seed = begun(parser, "learned")
    folders = [folder, *(given.also or ())]
    seeds = " and ".join(str(seed_of(each, None)) for each in folders)
    print(INTRODUCTION.format(cores=os.cpu_count(), seed=seeds, least=LEAST_BINDINGS), flush=True)
    for kind in given.kind or ["varied"]:
        if not given.replay:
            record(folder, kind, seed, given.clusters, given.drains)
        pairs = [pair for each in folders for pair in judged(each, kind)]
        if pairs:
            print(f"\n## {KINDS[kind].title}", *section(pairs), sep="\n", flush=True)


def judged(folder: Path, kind: str) -> list[LearnedPair]:
    """Scores the recorded drains of all clusters of `kind`."""
    clusters: dict[Path, list[Path]] = {}
    for path in paths(folder):
        if path.parent.name.split("-")[0] == kind:
            clusters.setdefault(path.parent, []).append(path)
    with ProcessPoolExecutor() as processes:
        return [pair for found in processes.map(judge, clusters.values()) for pair in found]


def judge(drains: Sequence[Path]) -> list[LearnedPair]:
    """Learns from a cluster's drains one after another, and scores those before which enough bindings were seen."""
    scheduler, estimate, found = Scheduler(), None, []
    number, seconds, known = 0, 0.0, frozenset[str]()
    for path in drains:
        done = read(path)
        listed = load_pages(done.happened.pages)
        uids = frozenset(pod.uid for pod in listed.placed_pods)
        if estimate is None or not uids & known:  # an interrupted bench makes the cluster, and its scheduler, again
            estimate, number, seconds = SearchEstimate.unknown(listed, scheduler), 0, 0.0
        known = uids
        if estimate.bindings >= LEAST_BINDINGS:
            found.append(_pair(done, listed, estimate, scheduler))
        more, took = others(done)
        number, seconds = number + more, seconds + took
        estimate = replace_value(learned_from(done, listed, estimate, scheduler), others=number / max(1.0, seconds))
    return found


def learned_from(done: DrainRecord, listed: Snapshot, estimate: SearchEstimate, scheduler: Scheduler) -> SearchEstimate:
    """The estimate of the next start after the drain's bindings."""
    for seen in bindings(done, listed):
        if seen.pod is None:
            estimate = estimate.after_unknown_binding(seen.before)
            continue
        try:
            expected = estimate.expect(seen.before, scheduler, seen.pod)
        except NoProfileError:
            continue
        estimate = estimate.after_binding(expected, seen.node)
    return estimate


def _pair(done: DrainRecord, listed: Snapshot, estimate: SearchEstimate, scheduler: Scheduler) -> LearnedPair:
    searches = estimate.searches(listed, scheduler, most_searches(len(listed.nodes)))
    forecasts = (simulate_drain(listed, [done.node], made_at="", searches=each) for each in (None, searches))
    without, learned = (score(with_forecast(done.happened, listed, forecast)) for (forecast,) in forecasts)
    print(
        f"{done.cluster}, drain of {done.node}: {learned.inside} of {learned.pods} pods got a node that the forecast "
        "names",
        file=sys.stderr,
        flush=True,
    )
    return LearnedPair(done.cluster, without, learned)


def section(pairs: Sequence[LearnedPair]) -> Iterator[str]:
    """A row for each cluster, the total with a confidence interval, and the wrong forecasts."""
    rows = [
        (name, [pair for pair in pairs if pair.cluster == name]) for name in dict.fromkeys(p.cluster for p in pairs)
    ]
    yield f"\n| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    for name, each in (*rows, ("all", pairs)):
        yield f"| {' | '.join((name, *_cells(each)))} |"
    low, high = interval([pair.learned for pair in pairs], random.Random(1))
    yield f"\n95 % interval {low:.1f} to {high:.1f} % for the column *learned: inside*, by resampling drains."
    yield from misses([(name, total([pair.learned for pair in each])) for name, each in rows])


def _cells(pairs: Sequence[LearnedPair]) -> Iterator[str]:
    without, learned = total([pair.without for pair in pairs]), total([pair.learned for pair in pairs])
    yield from (str(len(pairs)), str(learned.pods), share(without.inside, without.pods), f"{without.mean_size:.2f}")
    yield from (share(learned.inside, learned.pods), share(learned.firsts, learned.pods), f"{learned.mean_size:.2f}")
    yield f"{learned.mean_size / without.mean_size:.2f}" if without.mean_size else "-"


if __name__ == "__main__":
    main()
