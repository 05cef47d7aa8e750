"""How many pods per second are bound besides those that drains displace. A forecast of a drain does not foresee them,
and each of them moves the start of the scheduler's search."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final

from scheduler_core.model.pod import OwnerReference, Pod
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
        self._left: defaultdict[tuple[str, OwnerReference | None], list[float]] = defaultdict(list)

    def leaves(self, pod: Pod, before: Snapshot, now: float) -> None:
        """The pod is deleted; `before` is the cluster right before. If its node is cordoned, the next pod of its owner
        replaces it, also one that comes later: a StatefulSet's and a Job's come when it is gone."""
        if pod.owner is not None and before.has_node(pod.node_name) and before.node(pod.node_name).unschedulable:
            self._forget(now)
            self._left[pod.namespace, pod.owner].append(now)

    def bound(self, pod: Pod, now: float) -> None:
        """A pod does not count if it replaces one that left a cordoned node."""
        left = self._left.get((pod.namespace, pod.owner))
        if left and now - left[-1] <= WINDOW_SECONDS:
            left.pop()
        else:
            self._bound.append(now)

    def per_second(self, now: float) -> float:
        """0 until one was bound. In the first minute it is taken as if a minute had passed."""
        while self._bound and now - self._bound[0] > WINDOW_SECONDS:
            self._bound.popleft()
        began = self._bound[0] if len(self._bound) == _MOST else max(self._began, now - WINDOW_SECONDS)
        return len(self._bound) / max(_LEAST_SECONDS if len(self._bound) < _MOST else 1e-3, now - began)

    def _forget(self, now: float) -> None:
        """Nobody replaces some pods, as those of a Deployment that was made smaller."""
        for owner in [owner for owner, left in self._left.items() if not left or now - left[-1] > WINDOW_SECONDS]:
            del self._left[owner]
