"""Kinds of fleets: repeat moves in careen's default order and in a random one, and the pods that found no room until a
node was back.

    python -m bench.moves.kinds [--seeds 20] [--only 'unequal zones' …]

Both orders obey the same rules: the control plane goes last, and budgets apply. Each seed is one lot, so the lots are
independent, and the 95 % interval of the difference is that of paired lots.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from statistics import fmean

from bench.moves.__main__ import shown
from bench.moves.delegating import Delegating
from bench.rollout.sample import NODE_MILLICPU, NODES, ZONES, sample
from bench.rollout.simulated import as_agents_go, difference, placed, rolled_out
from careen.core.facts import keys
from careen.core.facts.policy import Budget, BudgetKind, Order
from scheduler_core.simulation.timeline import Timeline
from scheduler_core.snapshot.snapshot import Snapshot

_QUARTER_OF_A_ZONE = Budget(kind=BudgetKind.ZONE, limit=10**6, percent=25)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetKind:
    """A fleet and its roll-out."""

    title: str
    nodes: int = 60
    at_once: int = 10
    zones: tuple[int, ...] = (1, 1, 1)  # shares of the nodes
    millicpu: tuple[int, ...] = (NODE_MILLICPU,)  # of the nodes, by turns
    stays: str = ""  # no node of this zone asks
    asking: float = 1.0  # the share of the other nodes that asks
    control_plane: int = 0
    named: int = 0  # nodes that are in the line already
    budgets: tuple[Budget, ...] = ()


KINDS = (
    FleetKind(title="three zones"),
    FleetKind(title="one zone", zones=(1,)),
    FleetKind(title="unequal zones, 12, 24 and 24 nodes", zones=(1, 2, 2)),
    FleetKind(title="unequal zones, 10 and 50 nodes", zones=(1, 5)),
    FleetKind(title="one zone of three does not ask", stays=ZONES[1]),
    FleetKind(title="a third does not ask", asking=2 / 3),
    FleetKind(title="nodes of 4, 8 and 12 cpus", millicpu=(4000, 8000, 12000, 8000)),
    FleetKind(title="three control-plane nodes", control_plane=3),
    FleetKind(title="at most 25 % of a zone", budgets=(_QUARTER_OF_A_ZONE,)),
    FleetKind(title="five nodes named before", named=5),
    FleetKind(title="240 nodes, a third does not ask", nodes=240, at_once=24, asking=2 / 3),
)


@dataclass(slots=True)
class Shuffled(Delegating):
    """The agents' rules with --order=fewest-moves, and these numbers instead of the numbers of pods."""

    place: dict[str, int]

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:  # noqa: ARG002 - the port's signature
        return self.rules.line(waiting, at, self.place.__getitem__)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.moves.kinds", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--only", nargs="+", default=[], metavar="TITLE", help="kinds whose titles contain this")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    print("| fleet | lots | at once | random | oldest | difference ± 95 % interval | without room, random | oldest |")
    print(f"|{'---|' * 8}")
    with ProcessPoolExecutor(given.processes) as pool:
        for kind in KINDS:
            if given.only and not any(part in kind.title for part in given.only):
                continue
            lots = [lot for lot in pool.map(partial(lot_of_kind, kind), range(given.seeds)) if lot]
            print(row(kind, lots), flush=True)


def row(kind: FleetKind, lots: Sequence[tuple[Timeline, Timeline]]) -> str:
    """Of the timelines of a random order and of the default one, for each lot."""
    chance, ours = ([lot[each].double_moves for lot in lots] for each in (0, 1))
    cells = (
        kind.title,
        len(lots),
        kind.at_once,
        shown(chance),
        shown(ours),
        difference([after - before for before, after in zip(chance, ours, strict=True)]),
        *(f"{fmean(len(lot[each].waits) for lot in lots):.1f}" for each in (0, 1)),
    )
    return f"| {' | '.join(map(str, cells))} |"


def lot_of_kind(kind: FleetKind, seed: int) -> tuple[Timeline, Timeline] | None:
    """The roll-outs of one seed; None if its pods do not fit into such a fleet even before the roll-out."""
    chance = random.Random(f"lot {seed} 0")
    drawn = replace(sample(seed, times=kind.nodes // NODES), places=_places(kind))
    try:
        snapshot = placed(drawn, chance, kind.millicpu)
    except AssertionError:
        return None
    names = [name for name, _ in drawn.places]
    chance.shuffle(names)
    snapshot = _with_control_plane(snapshot, names[len(names) - kind.control_plane :])
    zone = dict(drawn.places)
    able = [name for name in names if zone[name] != kind.stays]
    asking = able[: round(kind.asking * len(able))]
    place = {name: number for number, name in enumerate(names)}
    made = partial(
        as_agents_go, snapshot, at_once=kind.at_once, budgets=kind.budgets, named=tuple(asking[: kind.named])
    )
    return (
        rolled_out(snapshot, asking, Shuffled(made(order=Order.FEWEST_MOVES), place)),
        rolled_out(snapshot, asking, made()),
    )


def _places(kind: FleetKind) -> tuple[tuple[str, str], ...]:
    """Name and zone of each node: always a node of the zone that lacks most of its share."""
    found: list[tuple[str, str]] = []
    used = Counter[int]()
    for number in range(kind.nodes):
        zone = max(
            range(len(kind.zones)), key=lambda each: kind.zones[each] * len(found) / sum(kind.zones) - used[each]
        )
        used[zone] += 1
        found.append((f"n{number:03}", ZONES[zone]))
    return tuple(found)


def _with_control_plane(snapshot: Snapshot, names: Sequence[str]) -> Snapshot:
    nodes = (snapshot.node(name) for name in names)
    return snapshot.with_nodes_replaced(replace(node, labels={**node.labels, keys.CONTROL_PLANE: ""}) for node in nodes)


if __name__ == "__main__":
    main()
