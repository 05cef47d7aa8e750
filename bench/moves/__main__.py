"""Repeat moves (a pod is moved a second time) of simulated roll-outs, by the number of nodes at once.

    python -m bench.moves [--nodes 12 60 240 1000] [--at-once 1 3 10 10%] [--seeds 0 1 2] [--lots 2] [--zones 3 1]

The fleets are those of `make bench-rollout`, or multiples of them. A lot is one placement of the seed's pods and one
random order of the nodes. `floor`: the pods of the first wave if it is made of the emptiest nodes; if every node
reboots, all of them move again, unless they find no room until then. careen's own rules decide every order;
scheduler_core chooses the node of every evicted pod. Budgets and timing are left out.

A row is printed as soon as its lots are done. Fleets of 1,000 nodes and more have one lot of each seed: a lot takes
minutes there.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import product
from statistics import fmean, stdev

from bench.moves.by_order import by_order
from bench.rollout.sample import NODES, ZONES, sample
from bench.rollout.simulated import InOrder, placed, repeat_moves
from careen.core.facts import keys
from careen.core.facts.policy import Order
from scheduler_core.simulation.movable import movable_pods
from scheduler_core.simulation.rollout_parts.rules import Rules
from scheduler_core.snapshot.snapshot import Snapshot

SHARES = {"all": 1.0, "two thirds": 2 / 3}
COLUMNS = ("random", *(order.value for order in Order), "floor")
_LARGE = 1000  # nodes

Lot = tuple[Snapshot, list[str]]


def main() -> None:
    given = _arguments()
    print("# Repeat moves by the number of nodes at once\n\nMean ± standard deviation of the lots.\n")
    print(f"| nodes | zones | lots | asking | at once | {' | '.join(COLUMNS)} |\n|{'---|' * (5 + len(COLUMNS))}")
    with ProcessPoolExecutor(given.processes) as pool:
        for nodes in given.nodes:
            times = max(1, round(nodes / NODES))
            lots = 1 if nodes >= _LARGE else given.lots
            numbers = [(seed, lot) for seed in given.seeds for lot in range(lots)]
            widths = dict.fromkeys(width_of(each, times * NODES) for each in given.at_once)
            for zones, share, most in product(given.zones, given.asking, widths):
                measure = partial(_of_a_lot, times=times, zones=zones, share=SHARES[share], most=most)
                found = list(pool.map(measure, numbers))
                cells = (shown([each[column] for each in found]) if column in found[0] else "" for column in COLUMNS)
                row = (times * NODES, zones, len(found), share, most, *cells)
                print(f"| {' | '.join(map(str, row))} |", flush=True)


def a_parser(module: str, words: str | None) -> argparse.ArgumentParser:
    """Of a bench over several fleets, numbers of nodes at once and lots."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=words, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[12, 60, 240], help="rounded to multiples of 12")
    parser.add_argument("--at-once", nargs="+", default=["3", "10", "10%"], help="numbers, or shares of the nodes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--lots", type=int, default=2)
    return parser


def fleets(given: argparse.Namespace) -> Iterator[tuple[int, list[Lot], Sequence[int]]]:
    """For each fleet of three zones: its nodes, its lots, and how many nodes may reboot at once."""
    for nodes in given.nodes:
        times = max(1, round(nodes / NODES))
        lots = [lot_of(seed, lot, times=times, zones=3) for seed in given.seeds for lot in range(given.lots)]
        yield times * NODES, lots, tuple(dict.fromkeys(width_of(each, times * NODES) for each in given.at_once))


def _arguments() -> argparse.Namespace:
    parser = a_parser("bench.moves", __doc__)
    parser.set_defaults(nodes=[12, 60, 240, 1000], at_once=["1", "3", "10", "10%"])
    parser.add_argument("--asking", nargs="+", default=[*SHARES], choices=[*SHARES], help="how many nodes reboot")
    parser.add_argument("--zones", type=int, nargs="+", default=[3, 1], choices=range(1, len(ZONES) + 1))
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def width_of(text: str, nodes: int) -> int:
    return max(1, round(float(text[:-1]) * nodes / 100)) if text.endswith("%") else min(int(text), nodes)


def _of_a_lot(number: tuple[int, int], *, times: int, zones: int, share: float, most: int) -> dict[str, int]:
    """The repeat moves by column. Each lot runs in a process of its own."""
    snapshot, names = lot_of(*number, times=times, zones=zones)
    return repeats(snapshot, names[: round(share * len(names))], most)


@lru_cache(maxsize=6)  # the rows of a fleet have the same lots
def lot_of(seed: int, lot: int, *, times: int, zones: int) -> Lot:
    """The cluster, and its nodes in a random order."""
    drawn, chance = sample(seed, times=times, zones=zones), random.Random(f"lot {seed} {lot}")
    snapshot = placed(drawn, chance)
    names = [name for name, _ in drawn.places]
    chance.shuffle(names)
    return snapshot, names


def repeats(snapshot: Snapshot, asking: Sequence[str], at_once: int) -> dict[str, int]:
    """The repeat moves of roll-outs over the same placement, by the order of the nodes."""
    found = {
        name: repeat_moves(snapshot, asking, made(), taint_key=keys.DEFAULT_TAINT_KEY)
        for name, made in _orders(snapshot, asking, at_once)
    }
    if not _has_zones(snapshot):
        found[Order.ZONE.value] = found[Order.OLDEST.value]
    if len(asking) == len(snapshot.nodes):
        found["floor"] = sum(sorted(movable_pods(snapshot).values())[:at_once])
    return found


def _orders(snapshot: Snapshot, asking: Sequence[str], at_once: int) -> Iterator[tuple[str, Callable[[], Rules]]]:
    yield "random", lambda: InOrder(tuple(asking), at_once)
    for order in Order:
        if order is not Order.ZONE or _has_zones(snapshot):
            yield order.value, partial(by_order, snapshot, order=order, at_once=at_once)


def _has_zones(snapshot: Snapshot) -> bool:
    """Whether there are several: with one zone, the orders by zone and by age are the same."""
    return len({node.labels.get(keys.ZONE) for node in snapshot.nodes}) > 1


def shown(found: Sequence[int]) -> str:
    """Mean and standard deviation."""
    return f"{fmean(found):.1f} ± {stdev(found):.1f}" if len(found) > 1 else f"{fmean(found):.1f}"


if __name__ == "__main__":
    main()
