"""What was found on each node, kept for later pods with the same spec while the node, its pods and the pods nominated
to it stay the same.

Pods that preempt often have equal specs, and between two of them few nodes change.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.remembered import Remembered
from scheduler_core.snapshot.snapshot import Snapshot

Answer = TypeVar("Answer")

# Each keeps the NodeInfo of every node that was tried, as it was then: memory for nodes that have changed since.
_QUESTIONS: Final = 4


class KeptAnswers(Generic[Answer]):
    """The answers to one question, by node."""

    def __init__(self, known: dict[int, tuple[NodeInfo, tuple[Pod, ...], Answer]]) -> None:
        self._known = known

    def find(self, node_info: NodeInfo, nominated: tuple[Pod, ...]) -> Answer | None:
        """`nominated`: to this node, without the pod itself."""
        kept = self._known.get(node_info.row)
        if kept is None or kept[0] is not node_info or kept[1] != nominated:
            return None
        return kept[2]

    def keep(self, node_info: NodeInfo, nominated: tuple[Pod, ...], answer: Answer) -> None:
        self._known[node_info.row] = (node_info, nominated, answer)


def kept_answers(
    snapshot: Snapshot, what: str, question: Hashable | None, *, given: object = None
) -> KeptAnswers[Answer]:
    """`question`: what decides the answers besides the nodes; None if too much does. `given`: what else decides them,
    compared by identity."""
    if question is None:
        return KeptAnswers({})
    kept: Remembered[Hashable, tuple[object, KeptAnswers[Answer]]] = snapshot.remember(
        ("answers", what), lambda: Remembered(_QUESTIONS)
    )
    known = kept.get(question)
    if known is None or known[0] is not given:
        known = kept[question] = (given, KeptAnswers({}))
    return known[1]


def others(pod: Pod, nominated: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """The nominated pods without `pod` itself."""
    for each in nominated:
        if each.name == pod.name and each.namespace == pod.namespace:
            return tuple(each for each in nominated if each.key != pod.key)
    return nominated
