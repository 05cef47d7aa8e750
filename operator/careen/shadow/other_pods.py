"""Counts how many pods per second are bound that do not replace pods of a drain. A forecast of a drain cannot foresee
these pods, but each of them moves the start of the scheduler's search."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final

from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.snapshot.snapshot import Snapshot

WINDOW_SECONDS: Final = 600.0
_LEAST_SECONDS: Final = 60.0
_MOST: Final = 6000


class OtherPods:
    """Counts the bindings of the last ten minutes that do not replace pods of a drain."""

    def __init__(self, now: float) -> None:
        """Starts counting at `now`, in seconds of a monotonic clock that all later calls use."""
        self._began = now
        self._bound: deque[float] = deque(maxlen=_MOST)
        self._left: defaultdict[tuple[str, OwnerReference | None], deque[float]] = defaultdict(deque)

    def leaves(self, pod: Pod, before: Snapshot, now: float) -> None:
        """Records that a pod is deleted. `before` is the cluster right before the deletion.

        If the pod's node is cordoned, the next pod of its owner counts as the replacement, even if it comes much later:
        a StatefulSet or a Job creates the replacement only after the pod is gone.
        """
        if pod.owner is not None and before.has_node(pod.node_name) and before.node(pod.node_name).unschedulable:
            self._forget(now)
            self._left[pod.namespace, pod.owner].append(now)

    def bound(self, pod: Pod, now: float) -> None:
        """Counts a binding, unless the pod replaces a pod that left a cordoned node."""
        left = self._left.get((pod.namespace, pod.owner), deque())
        _drop_old(left, now)
        if left:
            left.popleft()
        else:
            self._bound.append(now)

    def per_second(self, now: float) -> float:
        """Returns the bindings per second; 0 until the first one. In the first minute, assumes that a whole minute has
        passed."""
        _drop_old(self._bound, now)
        began = self._bound[0] if len(self._bound) == _MOST else max(self._began, now - WINDOW_SECONDS)
        return len(self._bound) / max(_LEAST_SECONDS if len(self._bound) < _MOST else 1e-3, now - began)

    def _forget(self, now: float) -> None:
        """Forgets deleted pods that were not replaced within a time limit, for example because their Deployment was
        scaled down."""
        for owner, left in list(self._left.items()):
            _drop_old(left, now)
            if not left:
                del self._left[owner]


def _drop_old(times: deque[float], now: float) -> None:
    while times and now - times[0] > WINDOW_SECONDS:
        times.popleft()
