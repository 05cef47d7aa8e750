"""How many pods per second are bound besides those that drains displace. A forecast of a drain does not foresee them,
and each of them moves the start of the scheduler's search."""

from __future__ import annotations

from collections import deque
from typing import Final

from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.snapshot import Snapshot

WINDOW_SECONDS: Final = 600.0
_LEAST_SECONDS: Final = 60.0
_MOST: Final = 6000


class OtherPods:
    """Counts the last ten minutes' bindings."""

    def __init__(self, now: float) -> None:
        """`now` and all later times are of one monotonic clock, in seconds."""
        self._began = now
        self._bound: deque[float] = deque(maxlen=_MOST)

    def bound(self, pod: Pod, before: Snapshot, now: float) -> None:
        """`before` is the cluster right before the binding. A pod of an owner that loses another one on a cordoned node
        is taken as displaced by the drain of that node."""
        if not _is_displaced(pod, before):
            self._bound.append(now)

    def per_second(self, now: float) -> float:
        """0 until one was bound. In the first minute it is taken as if a minute had passed."""
        while self._bound and now - self._bound[0] > WINDOW_SECONDS:
            self._bound.popleft()
        began = self._bound[0] if len(self._bound) == _MOST else max(self._began, now - WINDOW_SECONDS)
        return len(self._bound) / max(_LEAST_SECONDS if len(self._bound) < _MOST else 1e-3, now - began)


def _is_displaced(pod: Pod, before: Snapshot) -> bool:
    columns = before.columns
    return pod.owner is not None and any(
        other.terminating and other.owner == pod.owner and other.namespace == pod.namespace
        for row in columns.unschedulable.nonzero()[0]
        for other in before.pods_on(columns.names[row])
    )
