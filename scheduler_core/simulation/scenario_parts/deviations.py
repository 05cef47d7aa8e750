"""How a real cycle may differ from the simulated one, because parallel workers do not proceed at equal speed.

In some cycles one worker is ahead of another when the search ends. The nodes are then found in another order, so the
scheduler may choose another of several equal ones; in a few such cycles it misses the best node of the simulated search
or finds a better one.

The real search finds as many fitting nodes as the simulated one, but may have checked more or fewer refused ones; then
the next search starts elsewhere. If all nodes fit, or all are checked, the next start is as simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler_core.cycle_result import CycleResult

# The share of cycles in which a worker is ahead, how many nodes it has checked too early, and the share of these cycles
# in which the pod gets none of the best nodes of the simulated cycle. bench/accuracy/cycles.md and the first two
# sections of bench/accuracy/learned.md test these round numbers with clusters that were recorded after the numbers had
# been chosen.
AHEAD: Final = 0.4
NODES_AHEAD: Final = 8
_ELSEWHERE: Final = 0.1
# If the next start differs from the computed start: by how many nodes, and with which probability.
STEPS: Final[Mapping[int, float]] = {
    1: 0.27, -1: 0.27, 2: 0.15, -2: 0.15, 3: 0.05, -3: 0.05, 4: 0.02, -4: 0.02, 5: 0.01, -5: 0.01,
}  # fmt: skip


def moves_start(result: CycleResult) -> float:
    """If a worker was ahead: the probability that the next search does not start at `result.next_start`."""
    if result.sample is None or not result.evaluated:
        return 0.0
    fits = min(1.0, result.sample.looked_at / result.evaluated)
    return float(1.0 - fits**NODES_AHEAD)


def goes_elsewhere(result: CycleResult) -> float:
    """If a worker was ahead: the probability that the pod gets none of `result.best`."""
    return 0.0 if result.sample is None else _ELSEWHERE


def taken_in_order(result: CycleResult, node: str) -> float:
    """The probability that no worker is ahead and the pod gets this node."""
    return 1.0 - AHEAD if node == predicted_node(result) else 0.0


def taken_ahead(result: CycleResult, node: str) -> float:
    """The probability that a worker is ahead and the pod gets this node; 0 if it is not in `equals_of(result)`."""
    equals = equals_of(result)
    return AHEAD * (1.0 - goes_elsewhere(result)) / len(equals) if node in equals else 0.0


def equals_of(result: CycleResult) -> tuple[str, ...]:
    """The equally good nodes among which the cycle chooses; none if it finds no node."""
    node = predicted_node(result)
    return result.best if result.node and result.best else (node,) * bool(node)


def predicted_node(result: CycleResult) -> str:
    """The node that the simulated cycle chooses, or on which the pod preempts others; "" if there is neither."""
    return result.node or (result.preemption.node if result.preemption else "")
