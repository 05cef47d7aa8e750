"""Finds the states of the cluster in which the scheduler may have decided about a pod, as far as events show.

The scheduler decides a moment before other clients see its binding, and it counts the pod on its node at once. So the
cluster right before a binding can differ from what the scheduler saw. It may lack pods that the scheduler decided
earlier but bound later. It may contain pods that the scheduler decided later but bound earlier, and changes that the
scheduler had not seen.

Pods of equal priority are decided in the order in which they were created. If two pods are bound in another order
within a short time, or if the cluster changed shortly before, the scheduler may have seen a second state.
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
"""Bindings rarely take longer than this. Events rarely reach one client later than another by more than this."""
_MOST_CHANGES: Final = 64


@dataclass(slots=True, eq=False)
class ScheduledPod:
    """A pod whose node or refusal was just seen. `before` is the cluster right before that event."""

    pod: Pod
    node: str  # empty: it found none
    before: Snapshot
    turn: int  # in the order in which pods came
    seen_at: float  # monotonic
    at: str  # RFC 3339
    earlier: Snapshot | None = None  # before what changed shortly before
    decided_before: list[ScheduledPod] = field(default_factory=list)  # and bound later
    decided_after: list[str] = field(default_factory=list)  # and bound earlier
    followed_by: int = 0  # so many bindings that cannot be compared

    def other_worlds(self) -> Sequence[tuple[AgreementReason, Snapshot]]:
        """Returns the other states of the cluster in which the scheduler may have decided about this pod. Each comes
        with the reason why it is possible."""
        worlds = []
        if self.decided_before or self.decided_after:
            rows = self.before.columns.row_of
            coming = [(each.pod, each.node) for each in self.decided_before if each.node in rows]
            gone = [key for key in self.decided_after if self.before.placements.find(key) is not None]
            worlds.append((AgreementReason.ORDER, self.before.without_pods(gone).with_pods_placed(coming)))
        if self.earlier is not None:
            worlds.append((AgreementReason.CHANGED_MEANWHILE, self.earlier))
        return worlds


def note_order(landed: ScheduledPod, others: Iterable[ScheduledPod]) -> None:
    """Records on both pods that the scheduler may have decided them in another order than it bound them. That is likely
    if the pod bound later was created earlier."""
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
    """The recent changes of the cluster that a scheduling decision reads, except new pods and bindings."""

    def __init__(self) -> None:
        self._last: deque[_Change] = deque(maxlen=_MOST_CHANGES)

    def note(self, turn: int, now: float, before: Snapshot) -> None:
        """Records a change that is about to happen. `turn` is that of the newest pod that was created before it."""
        self._drop(now)
        self._last.append(_Change(turn, now, before))

    def bound(self, pod: Pod, node: str) -> None:
        """Adds a binding to every recent state of the cluster, because the scheduler knows its own bindings before
        other clients."""
        for each in self._last:
            each.bound.append((pod, node))

    def before(self, landed: ScheduledPod) -> Snapshot | None:
        """Returns the cluster as it was before the recent changes that came after the pod's creation; None if there
        were none."""
        self._drop(landed.seen_at)
        for each in self._last:
            if each.turn >= landed.turn:
                rows = each.before.columns.row_of
                return each.before.with_pods_placed([(pod, node) for pod, node in each.bound if node in rows])
        return None

    def _drop(self, now: float) -> None:
        while self._last and now - self._last[0].at > CLOSE_SECONDS:
            self._last.popleft()
