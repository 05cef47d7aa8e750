"""Measures what a forecast loses by following fewer searches, as it does above 1,000 nodes: `make
bench-accuracy-searches`.

There is no control plane, because scheduler_core is compared with itself. The bench forecasts drains in generated
clusters twice: with the fewest searches and with all searches. Then it simulates each drain repeatedly. Each simulation
uses one random search, with a random start and a random number of workers. In about half of the simulations, the order
of the nodes is random too, and no forecast simulates this order. *Inside* is the share of pods that get a node that the
forecast names; it should be 95 of 100.
"""

from __future__ import annotations

import argparse
import io
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.plan.__main__ import pages_of
from bench.scheduler.cluster import PODS_PER_NODE
from scheduler_core.cycle import Scheduler
from scheduler_core.sampling import Search
from scheduler_core.simulation.drain import LEAST_SEARCHES, most_searches, run_drain, simulate_drain
from scheduler_core.simulation.searches import MOST_SEARCHES, Likely
from scheduler_core.snapshot.dump import Header, read_dump, write_dump
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

RESULTS = Path(__file__).with_name("few_searches.md")
SIZES = (1000, 2000, 5000)
_WORKERS = (1, 2, 4, 8, 16)


class Counted(Value, kw_only=True):
    """The drains of one cluster. Of `landings` pods that got a node, `inside` got one of a forecast that followed
    `searches` possible searches."""

    nodes: int
    searches: int
    drains: int
    landings: int
    inside: int
    mean_set: float

    def row(self) -> str:
        usual = " (the default)" if most_searches(self.nodes) == self.searches else ""
        return (
            f"| {self.nodes:,} | {self.searches}{usual} | {self.drains} | {self.landings:,} | "
            f"{self.inside:,} ({self.inside / self.landings:.1%}) | {self.mean_set:.1f} |"
        )


def main() -> None:
    """A row for each size of cluster and number of searches, also written into few_searches.md."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy.few_searches",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--nodes",
        type=int,
        action="append",
        help="number of nodes of a cluster; repeatable; by default the sizes in few_searches.md",
    )
    parser.add_argument("--drains", type=int, default=2, help="number of nodes to drain in each cluster")
    parser.add_argument(
        "--times",
        type=int,
        default=15,
        help="number of simulations of each drain; each simulation draws a new random search",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(10**6),
        help="seed for the random choice of drains and searches",
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "careen-bench-plan-3")
    given = parser.parse_args()
    found: list[Counted] = []
    for nodes in given.nodes or SIZES:
        snapshot = cluster_of(given.folder, nodes)
        for counted in judged(snapshot, random.Random(f"{given.seed} {nodes}"), given.drains, given.times):
            found.append(counted)
            print(counted.row(), flush=True)
    if not given.nodes:
        RESULTS.write_text(page(found, given.seed, given.times), encoding="utf-8")


def cluster_of(folder: Path, nodes: int) -> Snapshot:
    """The cluster of `make bench-plan`, from that bench's dump."""
    dump = folder / f"{nodes}-1.json.gz"
    if not dump.exists():
        dump.parent.mkdir(parents=True, exist_ok=True)
        with dump.open("wb") as out:
            write_dump(
                Header(kube_version="v1.36.0", taken_at=""), pages_of(folder / f"{nodes}-1", nodes=nodes, seed=1), out
            )
    return read_dump(io.BytesIO(dump.read_bytes())).snapshot


def judged(snapshot: Snapshot, chance: random.Random, drains: int, times: int) -> Iterator[Counted]:
    """Simulates the drains of `drains` random nodes, each `times` times with one random search, and compares them
    with two forecasts: one with LEAST_SEARCHES possible searches, one with MOST_SEARCHES."""
    scheduler, nodes = Scheduler(), len(snapshot.nodes)
    drained = chance.sample(snapshot.node_names, drains)
    landed = {
        name: [_landings(snapshot, scheduler, name, drawn(chance, nodes)) for _ in range(times)] for name in drained
    }
    for searches in (LEAST_SEARCHES, MOST_SEARCHES):
        named: dict[str, frozenset[str]] = {}
        for name in drained:
            (forecast,) = simulate_drain(snapshot, [name], made_at="", most_scenarios=searches)
            named.update({pod.title: frozenset(pod.landing) for pod in forecast.pods})
        happened = [(pod, node) for each in landed.values() for course in each for pod, node in course]
        yield Counted(
            nodes=nodes,
            searches=searches,
            drains=drains,
            landings=len(happened),
            inside=sum(node in named[pod] for pod, node in happened),
            mean_set=sum(map(len, named.values())) / len(named),
        )


def drawn(chance: random.Random, nodes: int) -> Search:
    """A random search, as likely as `possible_searches` says."""
    shuffle = chance.randrange(10**6, 2**31) if chance.random() < 0.5 else 0  # an order that no forecast follows
    return Search(chance.randrange(nodes), chance.choice(_WORKERS), shuffle=shuffle)


def _landings(snapshot: Snapshot, scheduler: Scheduler, node: str, search: Search) -> list[tuple[str, str]]:
    drain = run_drain(snapshot, [node], scheduler, with_details=False, searches=(Likely(search, 1.0),))
    return [(each.pod.key, each.replacement.node_name) for each in drain.displaced if each.landed]


def page(found: Sequence[Counted], seed: int, times: int) -> str:
    """The content of few_searches.md."""
    rows = "\n".join(each.row() for each in found)
    return f"""# What a forecast loses if it simulates fewer searches

`make bench-accuracy-searches`; the seed {seed} chose the drains and the random searches. The library is compared with
itself, on the clusters of `make bench-plan` with {PODS_PER_NODE} pods a node. Each drain is simulated {times} times.
Each of these simulations draws one random search of the scheduler. *Searches*: how many possible searches of the
scheduler the forecast simulates. *Landings*: pods that got a node in a simulated drain. *Inside*: pods that got a node
that the forecast names; 95 of 100 pods should. *Nodes in a set*: the mean number of nodes that the forecast names for a
pod.

| nodes | searches | drains | landings | inside | nodes in a set |
|---:|---:|---:|---:|---:|---:|
{rows}
"""


if __name__ == "__main__":
    main()
