"""Finds the states of the cluster that the scheduler may have seen when it decided about a pod.

The scheduler knows its decision at once, but other clients see the binding a moment later. So the cluster right before
the binding of a pod can differ from what the scheduler saw when it decided about that pod. The cluster may lack other
pods: the scheduler decided about them before it decided about this pod, but their bindings came after the binding of
this pod. The cluster may contain further pods: the scheduler decided about them after this pod, but their bindings came
before the binding of this pod. The cluster may also contain changes that the scheduler had not seen.

The scheduler decides about pods of equal priority in the order of their creation. In two cases there is more than one
state that the scheduler may have seen. In the first case, two pods are bound shortly after one another, and the younger
pod is bound first. In the second case, the cluster changed shortly before a binding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from careen.shadow.outcomes import AgreementReason
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.snapshot import Snapshot

CLOSE_SECONDS: Final = 1.0
"""The longest time that a binding usually takes, and the longest usual delay between two clients that see one event."""
_MOST_CHANGES: Final = 64


@dataclass(slots=True, eq=False)
class ScheduledPod:
    """A pod that an event has just shown as bound, or as refused because no node fits. `before` is the cluster right
    before that event."""

    pod: Pod
    node: str  # empty: it found none
    before: Snapshot
    turn: int  # in the order in which pods came
    seen_at: float  # monotonic
    at: str  # RFC 3339
    # The cluster before its first recent change after the pod's creation, or None if there was no such change.
    earlier: Snapshot | None = None
    decided_before: list[ScheduledPod] = field(default_factory=list)  # and bound later
    decided_after: list[str] = field(default_factory=list)  # and bound earlier
    followed_by: int = 0  # the number of bindings seen right after this pod that cannot be compared

    def other_states(self) -> Sequence[tuple[AgreementReason, Snapshot]]:
        """Returns the other states of the cluster that the scheduler may have seen when it decided about this pod, each
        with the reason why it is possible."""
        states = []
        if self.decided_before or self.decided_after:
            rows = self.before.columns.row_of
            coming = [(each.pod, each.node) for each in self.decided_before if each.node in rows]
            gone = [key for key in self.decided_after if self.before.placements.find(key) is not None]
            states.append((AgreementReason.ORDER, self.before.without_pods(gone).with_pods_placed(coming)))
        if self.earlier is not None:
            states.append((AgreementReason.CHANGED_MEANWHILE, self.earlier))
        return states


def note_order(landed: ScheduledPod, others: Iterable[ScheduledPod]) -> None:
    """Records the pods of `others` about which the scheduler may have decided after its decision about `landed`,
    although their bindings were seen before the binding of `landed`. This can happen because other clients may see two
    bindings in another order than the order of the two decisions.

    A pod is recorded if three conditions are met. The binding of the pod was seen at most `CLOSE_SECONDS` before the
    binding of `landed`. The pod was created later than `landed`, or the order of the two creations is unknown, because
    both pods were in the list of pods with which the watch began. The priority of the pod is not higher than the
    priority of `landed`.
    """
    for other in others:
        is_close = landed.seen_at - other.seen_at <= CLOSE_SECONDS
        if not (is_close and landed.node and other.node) or landed.turn > other.turn:
            continue
        if landed.pod.priority >= other.pod.priority:
            other.decided_before.append(landed)
            landed.decided_after.append(other.pod.key)


@dataclass(slots=True)
class _Change:
    turn: int
    at: float
    before: Snapshot
    bound: list[tuple[Pod, str]] = field(default_factory=list)  # since


class RecentChanges:
    """The recent changes of the cluster that can change a scheduling decision, except new pods and bindings."""

    def __init__(self) -> None:
        self._last: deque[_Change] = deque(maxlen=_MOST_CHANGES)

    def note(self, turn: int, now: float, before: Snapshot) -> None:
        """Records a change of the cluster. `before` is the cluster before the change. `turn` is the number of the
        newest pod at that time (pods are numbered in the order of their creation), and not a round of an agent's loop.
        """
        self._drop(now)
        self._last.append(_Change(turn, now, before))

    def bound(self, pod: Pod, node: str) -> None:
        """Adds a binding to every recent state of the cluster, because the scheduler knows its own bindings earlier
        than other clients know them."""
        for each in self._last:
            each.bound.append((pod, node))

    def before(self, landed: ScheduledPod) -> Snapshot | None:
        """Returns the cluster before the first recent change that came after the pod's creation; None if there was no
        such change."""
        self._drop(landed.seen_at)
        for each in self._last:
            if each.turn >= landed.turn:
                rows = each.before.columns.row_of
                return each.before.with_pods_placed([(pod, node) for pod, node in each.bound if node in rows])
        return None

    def _drop(self, now: float) -> None:
        while self._last and now - self._last[0].at > CLOSE_SECONDS:
            self._last.popleft()
