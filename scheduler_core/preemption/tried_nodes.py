"""What preemption found on each node, kept for later pods with the same spec while the node, its pods and the
disruption budgets stay the same.

Pods that preempt often have equal specs, and between two of them few nodes change.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from scheduler_core.framework.verdict import Verdict
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.preemption.victims import Victims
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.remembered import Remembered
from scheduler_core.snapshot.snapshot import Snapshot

# Each keeps the NodeInfo of every node that was tried, as it was then: memory for nodes that have changed since.
_QUESTIONS: Final = 4

Found = dict[int, tuple[NodeInfo, Victims | Verdict]]
"""By row: the node that was tried there, and the result."""


def found_before(snapshot: Snapshot, question: Hashable | None, budgets: Sequence[DisruptionBudget]) -> Found:
    """To be read and filled by the caller. A result is valid only for the same NodeInfo. `question`: what else decides
    the results; None if too much does."""
    if question is None:
        return {}
    kept: Remembered[Hashable, tuple[Sequence[DisruptionBudget], Found]] = snapshot.remember(
        ("tried nodes",), lambda: Remembered(_QUESTIONS)
    )
    known = kept.get(question)
    if known is None or known[0] is not budgets:
        known = kept[question] = (budgets, {})
    return known[1]
