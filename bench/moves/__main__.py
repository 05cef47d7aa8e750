"""Repeat moves (a pod is moved a second time) of simulated roll-outs, by the number of nodes at once.

    python -m bench.moves [--nodes 12 60 240 1000] [--at-once 1 3 10 10%] [--seeds 0 1 2] [--lots 2] [--zones 3 1]

The fleets are those of `make bench-rollout`, or multiples of them. A lot is one placement of the seed's pods and one
random order of the nodes. `floor`: the pods of the first wave if it is made of the emptiest nodes; if every node
reboots, all of them move again, unless they find no room until then. careen's own rules decide every order;
scheduler_core chooses the node of every evicted pod. Budgets and timing are left out.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from bench.rollout.sample import NODES, ZONES, sample
from bench.rollout.simulated import InOrder, as_agents_go, placed, repeat_moves
from careen.core.facts import keys
from careen.core.facts.policy import Order
from scheduler_core.simulation.movable import movable_pods
from scheduler_core.simulation.rollout_parts.rules import Rules
from scheduler_core.snapshot.snapshot import Snapshot

SHARES = {"all": 1.0, "two thirds": 2 / 3}


def main() -> None:
    given = _arguments()
    columns = ["random", *(order.value for order in Order), "floor"]
    print("# Repeat moves by the number of nodes at once\n\nMean ± standard deviation of the lots.\n")
    print(f"| nodes | zones | asking | at once | {' | '.join(columns)} |\n|{'---|' * (4 + len(columns))}")
    for nodes in given.nodes:
        times = max(1, nodes // NODES)
        for zones in given.zones:
            lots = [_lot(seed, lot, times=times, zones=zones) for seed in given.seeds for lot in range(given.lots)]
            for title, share in SHARES.items():
                asking = [names[: round(share * len(names))] for _, names in lots]
                for most in dict.fromkeys(_width(each, times * NODES) for each in given.at_once):
                    rows = [repeats(snapshot, names, most) for (snapshot, _), names in zip(lots, asking, strict=True)]
                    cells = " | ".join(
                        shown([row[column] for row in rows]) if column in rows[0] else "" for column in columns
                    )
                    print(f"| {times * NODES} | {zones} | {title} | {most} | {cells} |", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.moves", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[12, 60, 240, 1000], help="rounded to multiples of 12")
    parser.add_argument("--at-once", nargs="+", default=["1", "3", "10", "10%"], help="numbers, or shares of the nodes")
    parser.add_argument("--zones", type=int, nargs="+", default=[3, 1], choices=range(1, len(ZONES) + 1))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--lots", type=int, default=2)
    return parser.parse_args()


def _width(text: str, nodes: int) -> int:
    return max(1, round(float(text[:-1]) * nodes / 100)) if text.endswith("%") else min(int(text), nodes)


def _lot(seed: int, lot: int, *, times: int, zones: int) -> tuple[Snapshot, list[str]]:
    """The cluster, and its nodes in a random order."""
    drawn, chance = sample(seed, times=times, zones=zones), random.Random(f"lot {seed} {lot}")
    snapshot = placed(drawn, chance)
    names = [name for name, _ in drawn.places]
    chance.shuffle(names)
    return snapshot, names


def repeats(snapshot: Snapshot, asking: Sequence[str], at_once: int) -> dict[str, int]:
    """The repeat moves of roll-outs over the same placement, by the order of the nodes."""
    rules: dict[str, Callable[[], Rules]] = {"random": lambda: InOrder(tuple(asking), at_once)}
    for order in Order:
        rules[order.value] = lambda order=order: as_agents_go(snapshot, order=order, at_once=at_once)  # type: ignore[misc]
    found = {
        name: repeat_moves(snapshot, asking, made(), taint_key=keys.DEFAULT_TAINT_KEY) for name, made in rules.items()
    }
    if len(asking) == len(snapshot.nodes):
        found["floor"] = sum(sorted(movable_pods(snapshot).values())[:at_once])
    return found


def shown(found: Sequence[int]) -> str:
    """Mean and standard deviation."""
    return f"{fmean(found):.1f} ± {stdev(found):.1f}" if len(found) > 1 else f"{fmean(found):.1f}"


if __name__ == "__main__":
    main()
