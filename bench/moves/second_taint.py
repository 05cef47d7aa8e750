"""Would a second soft taint on the nodes of the next wave save repeat moves? Simulated roll-outs of three zones, in
careen's own order.

    python -m bench.moves.second_taint [--nodes 12 60 240] [--at-once 3 10 10%] [--seeds 0 1 2] [--lots 2]

The scheduler normalises its scores by the most soft taints of a node: where a node has two, one weighs half as much, so
more pods land on the waves after the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from bench.moves.__main__ import SHARES, a_parser, fleets, shown
from bench.moves.by_order import ByOrder, by_order
from bench.rollout.simulated import difference, rolled_out
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.model.pod import Pod
from scheduler_core.model.taints import PREFER_NO_SCHEDULE, Taint
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import replace_value

_SECOND = Taint("careen.dev/next", "", PREFER_NO_SCHEDULE)


class Repelling(Scheduler):
    """Sees a second soft taint on the nodes of the next wave."""

    def __init__(self, next_wave: Callable[[], Sequence[str]]) -> None:
        super().__init__()
        self._next_wave = next_wave

    def schedule(self, snapshot: Snapshot, pod: Pod, **given: Any) -> CycleResult:
        nodes = (snapshot.node(name) for name in self._next_wave())
        seen = snapshot.with_nodes_replaced(
            replace_value(node, taints=(*node.taints, _SECOND)) for node in nodes if not node.unschedulable
        )
        return super().schedule(seen, pod, **given)


def main() -> None:
    parser = a_parser("bench.moves.second_taint", __doc__)
    print(
        "| nodes | asking | at once | one taint | two taints | difference ± 95 % interval |\n|---|---|---|---|---|---|"
    )
    for nodes, lots, widths in fleets(parser.parse_args()):
        for (share, part), most in product(SHARES.items(), widths):
            found = [
                tuple(repeats_with(snapshot, names[: round(part * len(names))], most, two=two) for two in (False, True))
                for snapshot, names in lots
            ]
            one, two = zip(*found, strict=True)
            saved = difference([after - before for before, after in found])
            print(f"| {nodes} | {share} | {most} | {shown(one)} | {shown(two)} | {saved} |", flush=True)


def repeats_with(snapshot: Snapshot, asking: Sequence[str], at_once: int, *, two: bool) -> int:
    """The repeat moves of one roll-out, with one soft taint or two."""
    rules = by_order(snapshot, at_once=at_once)
    scheduler = Repelling(lambda: _next_wave(rules)) if two else Scheduler()
    return rolled_out(snapshot, asking, rules, scheduler=scheduler).double_moves


def _next_wave(rules: ByOrder) -> Sequence[str]:
    return rules.content.line.names[: rules.policy.concurrency]


if __name__ == "__main__":
    main()
