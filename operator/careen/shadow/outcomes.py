"""The possible outcomes of a comparison, and the record of one comparison."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from scheduler_core.values import Value


class Agreement(StrEnum):
    """Whether scheduler_core and the scheduler agree; `CANNOT_SAY` counts for neither."""

    AGREED = "agreed"
    DISAGREED = "disagreed"
    CANNOT_SAY = "cannot-say"


class AgreementReason(StrEnum):
    """The way in which the two agree or disagree, or the reason why the comparison has no answer."""

    FIRST = "first"
    IN_SET = "in-set"
    BOTH_PENDING = "both-pending"

    OTHER_NODE = "other-node"
    REFUSED_NODE = "refused-node"
    NO_NODE_SAID = "no-node-said"
    NODE_SAID = "node-said"

    FIRST_SEEN_BOUND = "first-seen-bound"
    AFTER_A_GAP = "after-a-gap"
    ORDER = "order"
    CHANGED_MEANWHILE = "changed-meanwhile"
    BEHIND = "behind"
    NOT_REPRODUCED = "not-reproduced"
    EXTENDERS = "extenders"
    NOMINATED = "nominated"
    UNKNOWN_NODE = "unknown-node"
    OTHER_SCHEDULER = "other-scheduler"


_AGREED: Final = frozenset({AgreementReason.FIRST, AgreementReason.IN_SET, AgreementReason.BOTH_PENDING})
_DISAGREED: Final = frozenset(
    {AgreementReason.OTHER_NODE, AgreementReason.REFUSED_NODE, AgreementReason.NO_NODE_SAID, AgreementReason.NODE_SAID}
)

MEANINGS: Final = {
    AgreementReason.FIRST: "bound to the node that was the most likely",
    AgreementReason.IN_SET: "bound to another node of the set that holds 95 of 100 cases",
    AgreementReason.BOTH_PENDING: "neither found a node",
    AgreementReason.OTHER_NODE: "bound to a node outside of the set, which fits by scheduler_core's rules too",
    AgreementReason.REFUSED_NODE: "bound to a node that a plugin of scheduler_core refuses",
    AgreementReason.NO_NODE_SAID: "bound, and scheduler_core found no node",
    AgreementReason.NODE_SAID: "the scheduler found no node, and scheduler_core did",
    AgreementReason.FIRST_SEEN_BOUND: "the pod had a node when it was first seen",
    AgreementReason.AFTER_A_GAP: "the watch was interrupted, and the order of what happened is lost",
    AgreementReason.ORDER: "pods were bound in another order than they came, and the answer depends on it",
    AgreementReason.CHANGED_MEANWHILE: "the cluster changed shortly before, and the answer depends on it",
    AgreementReason.BEHIND: "more bindings came than could be compared",
    AgreementReason.NOT_REPRODUCED: "scheduler_core does not reproduce what this pod asks for",
    AgreementReason.EXTENDERS: "an extender takes part, and only the scheduler asks it",
    AgreementReason.NOMINATED: "a pod that has preempted others holds a place",
    AgreementReason.UNKNOWN_NODE: "bound to a node that was not seen yet",
    AgreementReason.OTHER_SCHEDULER: "the configuration has no profile of this schedulerName",
}


def outcome_of(reason: AgreementReason) -> Agreement:
    """Each reason belongs to one outcome."""
    if reason in _AGREED:
        return Agreement.AGREED
    return Agreement.DISAGREED if reason in _DISAGREED else Agreement.CANNOT_SAY


class Compared(Value, kw_only=True):
    """One pod: what became of it, and what scheduler_core had said. `said` are nodes with their shares, the most
    likely first; `node` is empty for a pod that found none."""

    pod: str
    profile: str
    at: str
    reason: AgreementReason
    node: str = ""
    said: tuple[tuple[str, float], ...] = ()
    why: str = ""
    """In words: what scheduler_core says of the node that the scheduler took."""
    plugin: str = ""
    """That refuses this node."""
    is_sampled: bool = False
    is_best_of_all: bool = False
    """The node has the highest score of all that fit: a scheduler that looks at every node takes it."""
    nodes: int = 0

    @property
    def outcome(self) -> Agreement:
        """The outcome that the reason belongs to."""
        return outcome_of(self.reason)
