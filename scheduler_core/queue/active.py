"""The active queue: the pods to schedule next, and the events that arrived while other pods were being placed.

Source: pkg/scheduler/backend/queue/active_queue.go (v1.36), without its locks: one thread owns the queue here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from scheduler_core.model.pod import Pod
from scheduler_core.queue.events import ClusterEvent
from scheduler_core.queue.heap import KeyedHeap
from scheduler_core.queue.queued_pod import QueuedPod, identity
from scheduler_core.values import Value

QueueOrder = Callable[[QueuedPod, QueuedPod], bool]
"""Whether the QueueSort plugin puts the first pod before the second."""


class Happening(Value):
    """An event with the object before and after it, numbered in order of arrival."""

    number: int
    event: ClusterEvent
    old: Any
    new: Any


class ActiveRoom:
    """The pods that may be scheduled now, in order, and the pods in flight: popped, with a scheduling attempt that has
    not ended."""

    def __init__(self, goes_before: QueueOrder) -> None:
        self._heap: KeyedHeap[QueuedPod] = KeyedHeap(lambda queued: queued.key, goes_before)
        self._in_flight: dict[str, int] = {}  # identity → the number of events before the pod was popped
        self._happenings: deque[Happening] = deque()
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def pods(self) -> tuple[QueuedPod, ...]:
        return tuple(self._heap)

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Uids, in the order in which the pods were popped."""
        return tuple(self._in_flight)

    @property
    def events(self) -> tuple[ClusterEvent, ...]:
        """Those kept for the pods in flight."""
        return tuple(happening.event for happening in self._happenings)

    def get(self, key: str) -> QueuedPod | None:
        return self._heap.get(key)

    def put(self, queued: QueuedPod) -> None:
        self._heap.put(queued)

    def remove(self, key: str) -> QueuedPod | None:
        return self._heap.remove(key)

    def take_next(self) -> QueuedPod | None:
        return self._heap.pop()

    def begin(self, queued: QueuedPod) -> bool:
        """Marks the popped pod as in flight. False if it is already; the caller must then drop this copy."""
        queued.attempts += 1
        if identity(queued.pod) in self._in_flight:
            return False
        self._in_flight[identity(queued.pod)] = self._count
        return True

    def done(self, pod: Pod) -> None:
        """Ends the attempt, and forgets the events before the oldest running attempt."""
        self._in_flight.pop(identity(pod), None)
        oldest = min(self._in_flight.values(), default=self._count)
        while self._happenings and self._happenings[0].number < oldest:
            self._happenings.popleft()

    def is_in_flight(self, pod: Pod) -> bool:
        return identity(pod) in self._in_flight

    def note(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Recorded only if some pod is in flight."""
        if self._in_flight:
            self._happenings.append(Happening(self._count, event, old, new))
            self._count += 1

    def happened_since_taken(self, pod: Pod) -> tuple[Happening, ...] | None:
        """The events since this pod was popped; None if it is not in flight."""
        since = self._in_flight.get(identity(pod))
        return (
            None if since is None else tuple(happening for happening in self._happenings if happening.number >= since)
        )
