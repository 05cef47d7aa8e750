"""What a smaller first wave would save and cost: repeat moves and minutes of simulated roll-outs in which every node
reboots, in careen's own order with three zones.

    python -m bench.moves.first_wave [--nodes 12 60 240] [--at-once 3 10 10%] [--seeds 0 1 2] [--lots 2]

Until the first node is back, `half` allows half as many nodes at once, `one` a single node; `slow` always allows no
more than one beside the rebooted ones. All boots take equally long, so that a roll-out is a number of waves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean

from bench.moves.__main__ import a_parser, fleets
from bench.moves.delegating import Delegating
from bench.rollout.simulated import as_agents_go, rolled_out
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
    parser = a_parser("bench.moves.first_wave", __doc__)
    print(f"Repeat moves, and minutes.\n\n| nodes | at once | {' | '.join(WIDTHS)} |\n|{'---|' * (2 + len(WIDTHS))}")
    for nodes, lots, widths in fleets(parser.parse_args()):
        for most in widths:
            cells = []
            for name in WIDTHS:
                found = [repeats_and_minutes(snapshot, names, most, name) for snapshot, names in lots]
                cells.append(f"{fmean(each for each, _ in found):.1f}, {fmean(each for _, each in found):.0f} min")
            print(f"| {nodes} | {most} | {' | '.join(cells)} |", flush=True)


def repeats_and_minutes(snapshot: Snapshot, asking: Sequence[str], at_once: int, name: str) -> tuple[int, float]:
    """Of one roll-out whose beginning is narrowed by the width `name`."""
    rules = Narrowed(as_agents_go(snapshot, at_once=at_once), lambda rebooted: WIDTHS[name](at_once, rebooted))
    made = rolled_out(snapshot, asking, rules)
    return made.double_moves, (made.ends - made.begins).total_seconds() / 60


if __name__ == "__main__":
    main()
