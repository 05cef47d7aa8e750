"""The bindings per second of pods that replace no drained pod. A forecast cannot foresee them, but each moves the
start."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final

from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.snapshot.snapshot import Snapshot

WINDOW_SECONDS: Final = 600.0
_LEAST_SECONDS: Final = 60.0
_MOST: Final = 6000


class OtherPods:
    """The bindings of the last ten minutes, except those of replacements."""

    def __init__(self, now: float) -> None:
        """`now` is a monotonic clock's, like that of all later calls."""
        self._began = now
        self._bound: deque[float] = deque(maxlen=_MOST)
        self._left: defaultdict[tuple[str, OwnerReference | None], deque[float]] = defaultdict(deque)

    def leaves(self, pod: Pod, before: Snapshot, now: float) -> None:
        """A pod is deleted; `before` is the cluster right before.

        On a cordoned node, the owner's next pod counts as the replacement, even minutes later: a StatefulSet or a Job
        creates it only after the pod is gone.
        """
        if pod.owner is not None and before.has_node(pod.node_name) and before.node(pod.node_name).unschedulable:
            self._forget(now)
            self._left[pod.namespace, pod.owner].append(now)

    def bound(self, pod: Pod, now: float) -> None:
        """Counts the binding, unless the pod replaces one that left a cordoned node."""
        left = self._left.get((pod.namespace, pod.owner), deque())
        _drop_old(left, now)
        if left:
            left.popleft()
        else:
            self._bound.append(now)

    def per_second(self, now: float) -> float:
        """Divides by a whole minute at least."""
        _drop_old(self._bound, now)
        began = self._bound[0] if len(self._bound) == _MOST else max(self._began, now - WINDOW_SECONDS)
        return len(self._bound) / max(_LEAST_SECONDS if len(self._bound) < _MOST else 1e-3, now - began)

    def _forget(self, now: float) -> None:
        """Deleted pods that are not replaced for a while, for example because their Deployment was scaled down."""
        for owner, left in list(self._left.items()):
            _drop_old(left, now)
            if not left:
                del self._left[owner]


def _drop_old(times: deque[float], now: float) -> None:
    while times and now - times[0] > WINDOW_SECONDS:
        times.popleft()
