"""Computes how a real cycle may deviate from the computed one, because parallel workers do not proceed at equal speed.

In some cycles one worker is ahead of another when the search ends. Such a cycle finds the nodes in another order, so it
may take another one of several equal nodes. It has also processed other nodes than the computed cycle. Both find as
many fitting nodes as the scheduler wanted, so the next start can differ only if they processed different numbers of
refused nodes. If all nodes fit, or if the search processes every node, the start is as computed. A few cycles with a
worker ahead miss the best node or find a better one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler_core.cycle import CycleResult

# The part of the cycles in which a worker is ahead, the nodes that it has then processed too early, and the part of
# these cycles that take a node which the computed one lacks: round numbers, chosen with all recordings in view. So the
# judged half in bench/accuracy/cycles.md is no independent proof of them.
AHEAD: Final = 0.4
NODES_AHEAD: Final = 8
_ELSEWHERE: Final = 0.1
# How far the next start is from the computed one, where it is another one.
STEPS: Final[Mapping[int, float]] = {
    1: 0.27, -1: 0.27, 2: 0.15, -2: 0.15, 3: 0.05, -3: 0.05, 4: 0.02, -4: 0.02, 5: 0.01, -5: 0.01,
}  # fmt: skip


def moves_start(result: CycleResult) -> float:
    """Returns the probability that the next search does not start at `result.next_start`, if one worker is ahead of
    another."""
    if result.sample is None or not result.evaluated:
        return 0.0
    fits = min(1.0, result.sample.looked_at / result.evaluated)
    return float(1.0 - fits**NODES_AHEAD)


def goes_elsewhere(result: CycleResult) -> float:
    """Returns the probability that the pod takes none of the nodes in `result.best`, if one worker is ahead of
    another."""
    return 0.0 if result.sample is None else _ELSEWHERE


def taken_in_order(result: CycleResult, node: str) -> float:
    """Returns the probability that no worker is ahead and that the pod takes this node."""
    return 1.0 - AHEAD if node == foretold(result) else 0.0


def taken_ahead(result: CycleResult, node: str) -> float:
    """Returns the probability that a worker is ahead and that the pod takes this node as one of the best nodes."""
    equals = equals_of(result)
    return AHEAD * (1.0 - goes_elsewhere(result)) / len(equals) if node in equals else 0.0


def equals_of(result: CycleResult) -> tuple[str, ...]:
    """Returns the equally good nodes that the pod may take. Empty if the cycle finds no node."""
    node = foretold(result)
    return result.best if result.node and result.best else (node,) * bool(node)


def foretold(result: CycleResult) -> str:
    """Returns the node of the computed cycle. Empty if the cycle finds none."""
    return result.node or (result.preemption.node if result.preemption else "")
