"""Measures how often forecasts are right if kube-scheduler checks only a part of the nodes: `make
bench-accuracy-sampled`.

The clusters have 200 and 300 nodes. The bench chooses their seeds when it runs, and prints them. The scheduler has its
default configuration. Its log says how many nodes each cycle evaluated, which gives the start of the next search. The
same drains are also forecast with that start, to show how much it helps to know the start.

At the end of each drain, the bench writes a record file. After all drains, the bench scores the forecasts of each
drain, and writes the scores into a second file in the folder of the record file. An interrupted bench continues if it
is started with the same --record. With --replay, the bench scores the records again with the current scheduler_core and
without a control plane.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.accuracy.__main__ import misses, share
from bench.accuracy.drained import KINDS, drain_cluster
from bench.accuracy.records import paths, read
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.snapshot.loading import load_pages
from tests.cluster.harness.measures.accuracy import Score, score
from tests.cluster.harness.measures.drains import with_forecast

INTRODUCTION = """# How often forecasts are right if the scheduler samples nodes, measured

Written by `make bench-accuracy-sampled` on {cores} cores; the clusters' seeds were drawn with {seed}. Clusters with
the default scheduler run on a real control plane. For each node, the bench makes a forecast from lists that it has just
read, then drains the node, then uncordons it. *Inside*: the pod got one of the nodes that the forecast names, which
should be true in 95 of 100 cases. *First*: the pod got the node that the forecast names first. *Known start*: the same
forecast, but with the knowledge where the scheduler's search begins."""
HEADER = ("cluster", "drains", "landings", "inside", "first", "mean set", "known start: inside", "mean set")
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Pair:
    """Two forecasts of one drain: one that knew the start of the scheduler's next search, and one that did not."""

    kind: str
    cluster: str
    said: Score
    told_start: Score


def main() -> None:
    """One table per kind of cluster. Without --replay, first drains nodes and records that; a drain whose record
    exists is not repeated."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy.sampled",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kind", action="append", choices=list(KINDS), help="kind of cluster; repeatable; by default all"
    )
    parser.add_argument(
        "--clusters", type=int, help="number of clusters of each kind; by default the number in `KINDS`"
    )
    parser.add_argument("--drains", type=int, default=5, help="number of nodes to drain in each cluster")
    given, folder, seed = begun(parser, "sampled")
    print(INTRODUCTION.format(cores=os.cpu_count(), seed=seed), flush=True)
    kinds = given.kind or list(KINDS)
    if not given.replay:
        for kind in kinds:
            record(folder, kind, seed, KINDS[kind].clusters if given.clusters is None else given.clusters, given.drains)
    pairs = judged(folder, kinds, anew=given.replay is not None)
    for kind in kinds:
        mine = [pair for pair in pairs if pair.kind == kind]
        if mine:
            print(f"\n## {KINDS[kind].title}", *section(mine), sep="\n", flush=True)


def begun(parser: argparse.ArgumentParser, name: str) -> tuple[argparse.Namespace, Path, int]:
    """Parses the options of a bench that records drains: all options, the folder of the records, the seed."""
    parser.add_argument("--seed", type=int, help="seed for the choice of the clusters' seeds; by default random")
    parser.add_argument(
        "--record", type=Path, help="folder for the records; clusters with a record are not drained again"
    )
    parser.add_argument("--replay", type=Path, help="folder with records to score; no cluster is drained")
    given = parser.parse_args()
    folder = given.replay or given.record or Path(tempfile.mkdtemp(prefix=f"careen-{name}-records-"))
    return given, folder, seed_of(folder, given.seed)


def seed_of(folder: Path, wanted: int | None) -> int:
    """The seed stored in the folder; if there is none, stores `wanted`, or a random seed."""
    kept = folder / "seed"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        kept.write_text(str(random.SystemRandom().randrange(10**6) if wanted is None else wanted))
    return int(kept.read_text())


def record(folder: Path, kind: str, seed: int, clusters: int, drains: int) -> None:
    """Drains `drains` nodes of each of `clusters` clusters, except those whose records exist."""
    chance, sizes = random.Random(seed), KINDS[kind].sizes
    for number in range(clusters):
        drain_cluster(folder, kind, chance.randrange(10**6), sizes[number % len(sizes)], drains)


def judged(folder: Path, kinds: Sequence[str], *, anew: bool) -> list[Pair]:
    """The scores of all recorded drains; computes missing ones, or with `anew` all, in parallel."""
    chosen = [path for path in paths(folder) if path.parent.name.split("-")[0] in kinds]
    with ProcessPoolExecutor() as processes:
        list(processes.map(judge, [path for path in chosen if anew or not _score_of(path).exists()]))
    return [msgspec.json.decode(_score_of(path).read_bytes(), type=Pair) for path in chosen]


def judge(path: Path) -> None:
    """Scores two forecasts of the recorded drain by today's scheduler_core, without and with the recorded start,
    into one file next to the record."""
    record = read(path)
    happened = record.happened
    snapshot = load_pages(happened.pages)
    forecasts = (simulate_drain(snapshot, [record.node], made_at="", start=start) for start in (None, record.start))
    said, known = (score(with_forecast(happened, snapshot, forecast)) for (forecast,) in forecasts)
    print(
        f"{record.kind} {record.cluster}, drain of {record.node}: {said.inside} of {said.pods} pods got a node that "
        "the forecast names",
        file=sys.stderr,
        flush=True,
    )
    fresh = path.with_suffix(".fresh-score")
    fresh.write_bytes(msgspec.json.encode(Pair(record.kind, record.cluster, said, known)))
    fresh.replace(_score_of(path))


def _score_of(path: Path) -> Path:
    return path.with_suffix(".score")


def section(pairs: Sequence[Pair]) -> Iterator[str]:
    """A row for each cluster, the total with a confidence interval, and the wrong forecasts."""
    clusters = dict.fromkeys(pair.cluster for pair in pairs)
    rows = [(name, [pair for pair in pairs if pair.cluster == name]) for name in clusters]
    yield f"\n| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    for name, each in (*rows, ("all", pairs)):
        yield f"| {' | '.join((name, *_cells(each)))} |"
    low, high = interval([pair.said for pair in pairs], random.Random(1))
    yield f"\n95 % interval {low:.1f} to {high:.1f} % for the column *inside*, by resampling drains."
    said, known = total([pair.said for pair in pairs]), total([pair.told_start for pair in pairs])
    if known.mean_size:
        yield f"A forecast lists {said.mean_size / known.mean_size:.2f} times as many nodes as with a known start."
    yield from misses([(name, total([pair.said for pair in each])) for name, each in rows])


def _cells(pairs: Sequence[Pair]) -> Iterator[str]:
    said, known = total([pair.said for pair in pairs]), total([pair.told_start for pair in pairs])
    yield from (str(len(pairs)), str(said.pods), share(said.inside, said.pods), share(said.firsts, said.pods))
    yield from (f"{said.mean_size:.2f}", share(known.inside, known.pods), f"{known.mean_size:.2f}")


def total(scores: Sequence[Score]) -> Score:
    result = Score()
    for each in scores:
        result.add(each)
    return result


def interval(scores: Sequence[Score], chance: random.Random) -> tuple[float, float]:
    """Confidence interval of the share of right forecasts. Resamples drains, not pods: within a drain, one pod's
    node depends on the others'."""
    shares = []
    for _ in range(_RESAMPLES):
        drawn = chance.choices(scores, k=len(scores))
        shares.append(100 * sum(each.inside for each in drawn) / max(1, sum(each.pods for each in drawn)))
    shares.sort()
    return shares[_RESAMPLES // 40], shares[-1 - _RESAMPLES // 40]


if __name__ == "__main__":
    main()
