"""The possible states in which the scheduler decided about a pod.

The scheduler knows its decision at once, other clients see the binding a moment later. So the cluster right before a
binding may lack pods that were decided earlier but bound later, and may contain pods that were decided later but bound
earlier, and changes that the scheduler had not seen.

Pods of equal priority are decided in the order of their creation. There is more than one possible state if two pods are
bound shortly after one another, the younger first, or if the cluster changed shortly before a binding.
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
    """A pod that an event has just shown as bound or as refused. `before` is the cluster right before that event."""

    pod: Pod
    node: str  # empty: it found none
    before: Snapshot
    turn: int  # in the order in which pods came
    seen_at: float  # monotonic
    at: str  # RFC 3339
    # The cluster before its first recent change after the pod's creation; None without one.
    earlier: Snapshot | None = None
    decided_before: list[ScheduledPod] = field(default_factory=list)  # and bound later
    decided_after: list[str] = field(default_factory=list)  # and bound earlier
    followed_by: int = 0  # the number of bindings seen right after this pod that cannot be compared

    def other_states(self) -> Sequence[tuple[AgreementReason, Snapshot]]:
        """The other possible states, each with the reason why."""
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
    """Records which of `others` may have been decided after `landed`, although they were seen bound before it: clients
    may see two bindings in another order than the decisions.

    Three conditions: seen at most `CLOSE_SECONDS` before `landed`; created later, or in an unknown order, because both
    were in the watch's first list; and no higher priority than `landed`.
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
    """Recent changes that can change a decision, except new pods and bindings."""

    def __init__(self) -> None:
        self._last: deque[_Change] = deque(maxlen=_MOST_CHANGES)

    def note(self, turn: int, now: float, before: Snapshot) -> None:
        """`before` is the cluster before the change, `turn` the number of the newest pod then (in the order of
        creation; not an agent's turn)."""
        self._drop(now)
        self._last.append(_Change(turn, now, before))

    def bound(self, pod: Pod, node: str) -> None:
        """Adds a binding to every recent state: the scheduler knows its own bindings earlier than other clients."""
        for each in self._last:
            each.bound.append((pod, node))

    def before(self, landed: ScheduledPod) -> Snapshot | None:
        """The cluster before the first recent change after the pod's creation; None without one."""
        self._drop(landed.seen_at)
        for each in self._last:
            if each.turn >= landed.turn:
                rows = each.before.columns.row_of
                return each.before.with_pods_placed([(pod, node) for pod, node in each.bound if node in rows])
        return None

    def _drop(self, now: float) -> None:
        while self._last and now - self._last[0].at > CLOSE_SECONDS:
            self._last.popleft()
