"""The possible outcomes of a comparison, and its record."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from scheduler_core.values import Value


class Agreement(StrEnum):
    """Whether scheduler_core and kube-scheduler agree on a pod's node."""

    AGREED = "agreed"
    DISAGREED = "disagreed"
    CANNOT_SAY = "cannot-say"


class AgreementReason(StrEnum):
    """How they agree or disagree, or why they cannot be compared."""

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
    AgreementReason.FIRST: "the scheduler bound the pod to the node that scheduler_core found most likely",
    AgreementReason.IN_SET: "the scheduler bound the pod to another node of the set that scheduler_core expected; the "
    "set covers 95 of 100 cases",
    AgreementReason.BOTH_PENDING: "the scheduler and scheduler_core found no node",
    AgreementReason.OTHER_NODE: "the scheduler bound the pod to a node that fits by scheduler_core's rules, but is not "
    "in the set that scheduler_core expected",
    AgreementReason.REFUSED_NODE: "the scheduler bound the pod to a node that a plugin of scheduler_core refuses",
    AgreementReason.NO_NODE_SAID: "the scheduler bound the pod, but scheduler_core found no node",
    AgreementReason.NODE_SAID: "the scheduler found no node, but scheduler_core found a node",
    AgreementReason.FIRST_SEEN_BOUND: "the pod already had a node when careen first saw the pod",
    AgreementReason.AFTER_A_GAP: "careen's watch was interrupted, and the order of events is lost",
    AgreementReason.ORDER: "pods were not bound in the order of their creation, and the node that scheduler_core finds "
    "depends on the order",
    AgreementReason.CHANGED_MEANWHILE: "the cluster changed shortly before the binding, and the node that "
    "scheduler_core finds depends on whether the scheduler had seen the change",
    AgreementReason.BEHIND: "too many bindings waited to be compared",
    AgreementReason.NOT_REPRODUCED: "scheduler_core does not reproduce what this pod requests",
    AgreementReason.EXTENDERS: "the scheduler calls an extender, and scheduler_core does not call extenders",
    AgreementReason.NOMINATED: "a pod that preempted other pods has a nominated node",
    AgreementReason.UNKNOWN_NODE: "the scheduler bound the pod to a node that careen had not yet seen in its watch",
    AgreementReason.OTHER_SCHEDULER: "the configuration has no profile of the pod's schedulerName",
}


def outcome_of(reason: AgreementReason) -> Agreement:
    """The outcome to which the reason belongs."""
    if reason in _AGREED:
        return Agreement.AGREED
    return Agreement.DISAGREED if reason in _DISAGREED else Agreement.CANNOT_SAY


class Compared(Value, kw_only=True):
    """One comparison. `said`: the expected nodes and their probabilities, most likely first. `node` is empty if the
    scheduler found none."""

    pod: str
    profile: str
    at: str
    reason: AgreementReason
    node: str = ""
    said: tuple[tuple[str, float], ...] = ()
    why: str = ""
    """Why scheduler_core did not expect the chosen node, as a sentence."""
    plugin: str = ""
    """The plugin of scheduler_core that refuses the chosen node, if any."""
    is_sampled: bool = False
    is_best_of_all: bool = False
    """Whether `node` has the highest score of all that fit. A scheduler that examines every node takes such a node."""
    nodes: int = 0

    @property
    def outcome(self) -> Agreement:
        """The outcome to which the reason belongs."""
        return outcome_of(self.reason)
