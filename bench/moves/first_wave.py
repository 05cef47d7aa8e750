"""What a smaller first wave would save and cost: repeat moves and minutes of simulated roll-outs in which every node
reboots, in careen's own order with three zones.

    python -m bench.moves.first_wave [--nodes 12 60 240] [--at-once 3 10 10%] [--seeds 0 1 2] [--lots 2]

Until the first node is back, `half` allows half as many nodes at once, `one` a single node; `slow` always allows no
more than one beside the rebooted ones. All boots take equally long, so that a roll-out is a number of waves.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean

from bench.moves.__main__ import lot_of, width_of
from bench.moves.delegating import Delegating
from bench.rollout.sample import NODES
from bench.rollout.simulated import BEGINS, as_agents_go
from careen.core.facts import keys
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.rollout import Durations, simulate_rollout
from scheduler_core.snapshot.snapshot import Snapshot

# How many nodes may be at work, by the number at once and the number of rebooted nodes.
WIDTHS: dict[str, Callable[[int, int], int]] = {
    "full": lambda at_once, _rebooted: at_once,
    "half": lambda at_once, rebooted: at_once if rebooted else max(1, at_once // 2),
    "one": lambda at_once, rebooted: at_once if rebooted else 1,
    "slow": lambda at_once, rebooted: min(at_once, 1 + rebooted),
}


@dataclass(slots=True)
class Narrowed(Delegating):
    """The agents' rules, with fewer nodes at once in the beginning."""

    width: Callable[[int], int]
    at_work: set[str] = field(default_factory=set)
    rebooted: int = 0

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        return self.rules.line(waiting, at, movable) if len(self.at_work) < self.width(self.rebooted) else ()

    def claimed(self, node: str, at: datetime) -> None:
        self.at_work.add(node)
        self.rules.claimed(node, at)

    def released(self, node: str, at: datetime) -> None:
        self.at_work.discard(node)
        self.rebooted += 1
        self.rules.released(node, at)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.moves.first_wave",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[12, 60, 240], help="rounded to multiples of 12")
    parser.add_argument("--at-once", nargs="+", default=["3", "10", "10%"], help="numbers, or shares of the nodes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--lots", type=int, default=2)
    given = parser.parse_args()
    print(f"Repeat moves, and minutes.\n\n| nodes | at once | {' | '.join(WIDTHS)} |\n|{'---|' * (2 + len(WIDTHS))}")
    for nodes in given.nodes:
        times = max(1, nodes // NODES)
        lots = [lot_of(seed, lot, times=times, zones=3) for seed in given.seeds for lot in range(given.lots)]
        for most in dict.fromkeys(width_of(each, times * NODES) for each in given.at_once):
            cells = []
            for name in WIDTHS:
                found = [repeats_and_minutes(snapshot, names, most, name) for snapshot, names in lots]
                cells.append(f"{fmean(each for each, _ in found):.1f}, {fmean(each for _, each in found):.0f} min")
            print(f"| {times * NODES} | {most} | {' | '.join(cells)} |", flush=True)


def repeats_and_minutes(snapshot: Snapshot, asking: Sequence[str], at_once: int, name: str) -> tuple[int, float]:
    """Of one roll-out whose beginning is narrowed by the width `name`."""
    rules = Narrowed(as_agents_go(snapshot, at_once=at_once), lambda rebooted: WIDTHS[name](at_once, rebooted))
    made = simulate_rollout(
        snapshot, asking, Scheduler(), rules, begins=BEGINS, durations=Durations(), taint_key=keys.DEFAULT_TAINT_KEY
    )
    assert len(made.reboots) == len(asking), "the simulated roll-out did not finish"
    return made.double_moves, (made.ends - made.begins).total_seconds() / 60


if __name__ == "__main__":
    main()
