"""How a real cycle deviates from the computed one where its workers do not proceed at equal speed.

In some cycles a worker is ahead of another when the search ends. Such a cycle has found the nodes in another order, so
it may take another one of equal nodes, and it has processed other nodes than the computed ones. The nodes that fit are
as many as the scheduler wanted, so only the refused ones among them can move the start of the next search: a search
among nodes that all fit moves it by the computed number, and so does one that processes every node. A few such cycles
lack the best node, or find a better one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler_core.cycle import CycleResult

# The part of the cycles in which a worker is ahead, the nodes that it has then processed too early, and the part of
# these cycles that take a node which the computed one lacks (bench/accuracy/cycles.md).
AHEAD: Final = 0.4
NODES_AHEAD: Final = 8
_ELSEWHERE: Final = 0.1
# How far the next start is from the computed one, where it is another one.
STEPS: Final[Mapping[int, float]] = {
    1: 0.27, -1: 0.27, 2: 0.15, -2: 0.15, 3: 0.05, -3: 0.05, 4: 0.02, -4: 0.02, 5: 0.01, -5: 0.01,
}  # fmt: skip


def moves_start(result: CycleResult) -> float:
    """The probability that the next start is another one than `result.next_start`, if a worker is ahead."""
    if result.sample is None or not result.evaluated:
        return 0.0
    fits = min(1.0, result.sample.looked_at / result.evaluated)
    return float(1.0 - fits**NODES_AHEAD)


def goes_elsewhere(result: CycleResult) -> float:
    """The probability that the pod takes none of `result.best`, if a worker is ahead."""
    return 0.0 if result.sample is None else _ELSEWHERE


def taken_in_order(result: CycleResult, node: str) -> float:
    """The probability that no worker is ahead and the pod takes this node."""
    return 1.0 - AHEAD if node == foretold(result) else 0.0


def taken_ahead(result: CycleResult, node: str) -> float:
    """The probability that a worker is ahead and the pod takes this node as one of the best ones."""
    equals = equals_of(result)
    return AHEAD * (1.0 - goes_elsewhere(result)) / len(equals) if node in equals else 0.0


def equals_of(result: CycleResult) -> tuple[str, ...]:
    """The nodes of which the pod may take any; empty if there is none."""
    node = foretold(result)
    return result.best if result.node and result.best else (node,) * bool(node)


def foretold(result: CycleResult) -> str:
    """The node of the computed cycle; empty if it finds none."""
    return result.node or (result.preemption.node if result.preemption else "")
