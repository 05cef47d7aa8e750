"""Measures the processor time in which a forecast counts the starts of kube-scheduler's search: `make
bench-accuracy-any-start`.

In a large cluster, a forecast simulates the whole drain with only a few of the possible searches, and therefore also
counts, per pod and node, the starts from which the pod gets this node
(`scheduler_core.simulation.scenario_parts.any_start`). The same drain is simulated alternately without and with this
count, so that other work on the machine slows both equally.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.accuracy.few_searches import cluster_of
from bench.plan.__main__ import cost
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.drain import most_searches, run_drain
from scheduler_core.simulation.searches import MOST_SEARCHES, possible_searches
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

RESULTS = Path(__file__).with_name("any_start.md")
SIZES = (200, 1000, 5000)


class CountedDrain(Value, kw_only=True):
    """Processor seconds for a cluster of `nodes` nodes: `forecast` of the command `careen forecast --from`, which
    simulates `searches` searches; `without` and `with_count` are medians of a simulated drain."""

    nodes: int
    searches: int
    forecast: float
    without: float
    with_count: float

    def row(self) -> str:
        is_counted = "yes" if self.searches < MOST_SEARCHES else "no"
        return (
            f"| {self.nodes:,} | {self.searches} | {is_counted} | {self.forecast:.1f} | {self.without:.2f} | "
            f"{self.with_count:.2f} | {self.with_count - self.without:+.2f} |"
        )


def main() -> None:
    """A row for each size of cluster, also written into any_start.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.any_start", description=__doc__)
    parser.add_argument(
        "--nodes",
        type=int,
        action="append",
        help="number of nodes of a cluster; repeatable; by default the sizes in any_start.md",
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "careen-bench-plan-3")
    given = parser.parse_args()
    found = []
    for nodes in given.nodes or SIZES:
        snapshot = cluster_of(given.folder, nodes)
        dump = given.folder / f"{nodes}-1.json.gz"
        command = [sys.executable, "-m", "careen", "forecast", snapshot.node_names[0], "--from", str(dump)]
        found.append(compared(snapshot, cost(command), given.runs))
        print(found[-1].row(), flush=True)
    if not given.nodes:
        RESULTS.write_text(page(found, given.runs), encoding="utf-8")


def compared(snapshot: Snapshot, forecast: float, runs: int) -> CountedDrain:
    """Simulates the drain of the first node `runs` times without the count and `runs` times with it."""
    used: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(runs):
        for counts, seconds in used.items():
            seconds.append(_seconds(snapshot, counts_any_start=counts))
    return CountedDrain(
        nodes=len(snapshot.nodes),
        searches=most_searches(len(snapshot.nodes)),
        forecast=forecast,
        without=median(used[False]),
        with_count=median(used[True]),
    )


def _seconds(snapshot: Snapshot, *, counts_any_start: bool) -> float:
    scheduler, most = Scheduler(), most_searches(len(snapshot.nodes))
    searches = possible_searches(snapshot, scheduler, most, None)
    began = time.process_time()
    run_drain(
        snapshot,
        snapshot.node_names[:1],
        scheduler,
        searches=searches,
        most_scenarios=most,
        with_pending=True,
        counts_any_start=counts_any_start,
    )
    return time.process_time() - began


def page(found: Sequence[CountedDrain], runs: int) -> str:
    """The content of any_start.md."""
    rows = "\n".join(each.row() for each in found)
    return f"""# How much time a forecast needs to count every start of the search

`make bench-accuracy-any-start`, with the clusters of `make bench-plan`. All times are seconds of processor time.

kube-scheduler checks only some nodes for each pod. Its search of the node list may start at any node, and this start
decides which nodes are checked. A forecast simulates the drain with only some possible searches. The column *searches*
shows how many. *To count the starts* means: for each pod and each node, to compute from how many starts of the search
the pod would get this node. A forecast counts the starts only if it simulates fewer than {MOST_SEARCHES} searches. The
column *counts starts* shows whether the forecast does so. The column `careen forecast --from` shows the time of this
command.

In each cluster, the bench also simulates the drain of one node {runs} times without this count and {runs} times with
the count, alternately. It simulates both even if the forecast does not count the starts. The columns *drain without
count* and *drain with count* show the median times. The column *difference* shows the time that the count adds. In a
row with "no" under *counts starts*, the forecast saves this time.

| nodes | searches | counts starts | `careen forecast --from` | drain without count | drain with count | difference |
|---:|---:|---|---:|---:|---:|---:|
{rows}
"""


if __name__ == "__main__":
    main()
