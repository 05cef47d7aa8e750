"""Counts the bindings per second of pods that are not replacements of drained pods. A forecast of a drain cannot
foresee these bindings, but each of them changes the node at which the scheduler begins its next search."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final

from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.snapshot.snapshot import Snapshot

WINDOW_SECONDS: Final = 600.0
_LEAST_SECONDS: Final = 60.0
_MOST: Final = 6000


class OtherPods:
    """Counts the bindings of the last ten minutes, except bindings of pods that replace a drained pod."""

    def __init__(self, now: float) -> None:
        """Starts counting at `now`, in seconds of a monotonic clock that all later calls use."""
        self._began = now
        self._bound: deque[float] = deque(maxlen=_MOST)
        self._left: defaultdict[tuple[str, OwnerReference | None], deque[float]] = defaultdict(deque)

    def leaves(self, pod: Pod, before: Snapshot, now: float) -> None:
        """Records that a pod is deleted. `before` is the cluster right before the deletion.

        If the pod's node is cordoned, the next pod of its owner is treated as the replacement, even minutes later. A
        StatefulSet or a Job creates the replacement only after the pod is gone.
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
        """Returns the number of counted bindings per second. If the counting began less than a minute ago, divides by a
        whole minute."""
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
