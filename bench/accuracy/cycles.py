"""Measures how real cycles deviate from computed ones: `make bench-accuracy-cycles CYCLES_FLAGS=FOLDER`.

Each FOLDER has records of `python -m bench.accuracy.sampled --record FOLDER`. The scheduler's log says where each
search began and how many nodes it processed, so each cycle can be computed again and compared. The two parameters of
`scheduler_core.simulation.scenario_parts.deviations` are fitted to every second cluster, and tested on these and on the
others.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, product
from math import log
from pathlib import Path
from statistics import fmean

from bench.accuracy.__main__ import share
from bench.accuracy.bindings import bindings
from bench.accuracy.records import DrainRecord, paths, read
from bench.accuracy.sampled import seed_of
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.sampling import Search
from scheduler_core.simulation.scenario_parts import deviations
from scheduler_core.snapshot.loading import load_pages

INTRODUCTION = """# How real scheduling cycles deviate from computed cycles, measured

Written by `make bench-accuracy-cycles`. The drains come from [sampled.md](sampled.md) and [learned.md](learned.md). A
drain counts only if its pods were bound in the order of the scheduler's log. The clusters were chosen at random, with
the seeds {seeds}. The bench computes each real cycle again, with one worker and with the real start of the search.
*Start as computed*: after the real cycle, the next search began at the same node as after the computed cycle.
*Predicted*: the share that scheduler_core's rule predicts for *start as computed*. *Far off*: the next search began
more than five nodes from the computed node. *Took the node*: the pod got the computed node. The rows group the cycles
by the share of the processed nodes that refused the pod."""
HEADER = (
    "cycles",
    "number",
    "start as computed",
    "predicted",
    "far off",
    "took the node",
    "took a node with an equal score",
    "took another node",
)
_BOUND = re.compile(r'"Successfully bound pod to node" pod="([^"]+)" node="[^"]+" evaluatedNodes=(\d+)')
_BOUNDS = (0.0, 0.02, 0.05, 0.1, 0.2, 1.01)


@dataclass(frozen=True, slots=True)
class ObservedCycle:
    """A recorded cycle against the computed one. `refused`: the share of the processed nodes that refused the pod;
    None if all nodes were processed. `start_off`: the distance in nodes between the computed and the real start of
    the next search. `is_node_right`: the pod got the computed node; `is_best`: one of the best score."""

    refused: float | None
    start_off: int
    is_node_right: bool
    is_best: bool

    @property
    def is_start_right(self) -> bool:
        return self.start_off == 0


def main() -> None:
    """Prints the parameters that fit one half of the clusters, a table for this half, and one for the other."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy.cycles",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, nargs="+")
    folders: Sequence[Path] = parser.parse_args().folder
    print(INTRODUCTION.format(seeds=" and ".join(str(seed_of(each, None)) for each in folders)), flush=True)
    halves = halves_of([path for folder in folders for path in paths(folder) if path.parent.name.startswith("varied")])
    with ProcessPoolExecutor() as processes:
        fitted, tested = ([cycle for found in processes.map(observed, half) for cycle in found] for half in halves)
    print("", *report(fitted, tested), sep="\n")


def halves_of(drains: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The drains of every second cluster, and those of the others."""
    clusters = list(dict.fromkeys(path.parent for path in drains))
    fitted = frozenset(clusters[::2])
    return [each for each in drains if each.parent in fitted], [each for each in drains if each.parent not in fitted]


def observed(path: Path) -> list[ObservedCycle]:
    """The cycles of a recorded drain, without those of pods of which the file has only the name. Empty if the log
    has the bindings in another order than the watch events."""
    record = read(path)
    seen = [each for each in bindings(record, load_pages(record.happened.pages)) if each.pod is not None]
    starts = _starts(record)
    titles = [each.pod.key for each in seen if each.pod is not None and each.pod.key in starts]
    if titles != [title for title in starts if title in titles]:
        return []
    scheduler, found = Scheduler(), []
    for each in seen:
        if each.pod is not None and each.pod.key in starts:
            start, processed = starts[each.pod.key]
            (result,) = scheduler.schedule_each(each.before, each.pod, [Search(start, 1, -1)])
            found.append(_observed(result, processed, each.node))
    return found


def _starts(record: DrainRecord) -> dict[str, tuple[int, int]]:
    """Per pod, where the search for it began and how many nodes it processed; of the first binding of each pod name."""
    starts, at = dict[str, tuple[int, int]](), record.start
    for title, processed in _BOUND.findall(record.log):
        starts.setdefault(title, (at, int(processed)))
        at = (at + int(processed)) % record.size
    return starts


def _observed(result: CycleResult, processed: int, node: str) -> ObservedCycle:
    refused = None
    if result.sample is not None and result.evaluated:
        refused = 1.0 - min(1.0, result.sample.looked_at / result.evaluated)
    return ObservedCycle(refused, processed - (result.evaluated or 0), node == result.node, node in result.best)


def report(fitted: Sequence[ObservedCycle], tested: Sequence[ObservedCycle]) -> Iterator[str]:
    """`fitted` and `tested` are the cycles of the two halves. The parameters that fit `fitted` best; how well they
    and those of scheduler_core describe each half; a table for each half."""
    halves = (("clusters that the fit used", fitted), ("clusters that the fit did not use", tested))
    ahead, nodes = fit(fitted)
    yield "The fit used one half of the clusters. The fitted parameters make the observed starts of the searches in"
    yield "this half as likely as possible:"
    yield f"in {ahead:.0%} of the cycles, one worker is {nodes} nodes ahead of another worker."
    share_in_use, nodes_in_use = deviations.AHEAD, deviations.NODES_AHEAD
    yield "The parameters in use, which scheduler_core assumes:"
    yield f"in {share_in_use:.0%} of the cycles, one worker is {nodes_in_use} nodes ahead of another worker."
    yield "The mean log-likelihood of a search's start:\n"
    yield "| half of the clusters | fitted parameters | parameters in use | one probability for all cycles |"
    yield "|---|---|---|---|"
    sampled = [each.is_start_right for each in fitted if each.refused is not None]
    constant = 1.0 - sum(sampled) / max(1, len(sampled))
    for name, half in halves:
        values = (
            likelihood(half, ahead, nodes),
            likelihood(half, share_in_use, nodes_in_use),
            likelihood(half, constant, None),
        )
        yield f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |"
    for name, half in halves:
        yield from ("", f"## The {name}", "", *table(half))


def fit(cycles: Sequence[ObservedCycle]) -> tuple[float, int]:
    """The parameters for which the observed starts are the most likely: the share of the cycles in which a parallel
    worker is ahead of another, and by how many nodes."""
    grid = product((each / 50 for each in range(5, 45)), range(2, 25))
    return max(grid, key=lambda pair: likelihood(cycles, *pair))


def likelihood(cycles: Sequence[ObservedCycle], ahead: float, nodes: int | None) -> float:
    """Mean log-likelihood of the observed starts of the next searches, without cycles that processed every node."""
    right = [(each.is_start_right, moved(each.refused, ahead, nodes)) for each in cycles if each.refused is not None]
    return sum(log(1.0 - part if is_right else part) for is_right, part in right) / max(1, len(right))


def moved(refused: float, ahead: float, nodes: int | None) -> float:
    """The probability, from 0.01 to 0.99, that the next search does not begin at the computed node.

    `refused` is the share of the processed nodes that refused the pod; `ahead` and `nodes` are as in `fit`. Without
    `nodes`, only `ahead` counts.
    """
    part = ahead if nodes is None else ahead * (1.0 - (1.0 - refused) ** nodes)
    return min(0.99, max(0.01, part))


def table(cycles: Sequence[ObservedCycle]) -> Iterator[str]:
    """Rows by the share of the nodes that refused the pod."""
    yield f"| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    yield _row("every node processed", [each for each in cycles if each.refused is None])
    for low, high in pairwise(_BOUNDS):
        mine = [each for each in cycles if each.refused is not None and low <= each.refused < high]
        yield _row(f"pod refused by {low:.0%} to {min(high, 1.0):.0%} of the nodes", mine)
    yield _row("all", cycles)


def _row(name: str, cycles: Sequence[ObservedCycle]) -> str:
    number, starts = len(cycles), sum(each.is_start_right for each in cycles)
    chances_of_computed_start = [
        1.0 if each.refused is None else 1.0 - moved(each.refused, deviations.AHEAD, deviations.NODES_AHEAD)
        for each in cycles
    ]
    predicted = f"{100 * fmean(chances_of_computed_start):.1f} %" if cycles else "-"
    nodes, best = sum(each.is_node_right for each in cycles), sum(each.is_best for each in cycles)
    far = sum(abs(each.start_off) > max(deviations.STEPS) for each in cycles)
    cells = (share(starts, number), predicted, str(far))
    taken = (share(nodes, number), share(best - nodes, number), share(number - best, number))
    return f"| {name} | {number} | {' | '.join((*cells, *taken))} |"


if __name__ == "__main__":
    main()
