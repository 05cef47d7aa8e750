"""The pods that must wait before the next attempt, and until when.

Source: pkg/scheduler/backend/queue/backoff_queue.go (v1.36). Times are seconds of a clock that never
jumps.
"""

from __future__ import annotations

import math

from scheduler_core.queue.active import QueueOrder
from scheduler_core.queue.heap import KeyedHeap
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.values import Value

WINDOW_SECONDS = 1
"""Back-offs end at whole seconds. So of two pods whose back-offs end in the same second, the pod with the higher
priority comes first, even if its back-off began some milliseconds later."""


class BackoffPolicy(Value, kw_only=True):
    """After the n-th failure initial·2^(n−1) seconds, at most the maximum. A maximum of 0 disables back-off.

    With `aligned`, the end is rounded down to whole seconds, as in releases that pop pods early (gate
    SchedulerPopFromBackoffQ). With `counts_attempts`, every attempt counts as a failure.
    """

    initial_seconds: float = 1
    max_seconds: float = 10
    aligned: bool = True
    counts_attempts: bool = False

    def duration_seconds(self, failures: int) -> float:
        if failures == 0 or self.max_seconds == 0:
            return 0
        if failures > 63:  # the shift below would be pointless, and in Go it gives the maximum as well
            return self.max_seconds
        return min(self.max_seconds, self.initial_seconds * float(1 << (failures - 1)))

    def align(self, instant: float) -> float:
        return math.floor(instant / WINDOW_SECONDS) * WINDOW_SECONDS if self.aligned else instant

    def ends_at(self, queued: QueuedPod) -> float | None:
        """None if the pod need not wait. Computed once for each attempt, and stored in `queued`."""
        failures = queued.attempts if self.counts_attempts else queued.consecutive_errors or queued.unschedulable_count
        if self.max_seconds == 0 or failures == 0:
            return None
        if queued.backoff_until is None:
            queued.backoff_until = self.align(queued.timestamp + self.duration_seconds(failures))
        return queued.backoff_until

    def is_waiting(self, queued: QueuedPod, now: float) -> bool:
        """Also during the second in which the back-off ends."""
        end = self.ends_at(queued)
        return end is not None and end >= self.align(now)


class BackoffRoom:
    """Refused pods, and separately pods whose attempt ended with an error.

    Only refused pods may be popped before their back-off ends: after an error, such as an unreachable API server, an
    early attempt would probably fail again and add load.
    """

    def __init__(self, policy: BackoffPolicy, goes_before: QueueOrder) -> None:
        self.policy = policy
        self._goes_before = goes_before
        self._refused: KeyedHeap[QueuedPod] = KeyedHeap(
            _key, self._ends_first_then_queue_order if policy.aligned else self._ends_first
        )
        self._failed: KeyedHeap[QueuedPod] = KeyedHeap(_key, self._ends_first)

    def __len__(self) -> int:
        return len(self._refused) + len(self._failed)

    @property
    def pods(self) -> tuple[QueuedPod, ...]:
        return (*self._refused, *self._failed)

    def put(self, queued: QueuedPod) -> None:
        room, other = (self._refused, self._failed) if queued.rejectors else (self._failed, self._refused)
        other.remove(queued.key)
        room.put(queued)

    def get(self, key: str) -> QueuedPod | None:
        return self._refused.get(key) or self._failed.get(key)

    def remove(self, key: str) -> QueuedPod | None:
        return self._refused.remove(key) or self._failed.remove(key)

    @property
    def has_early(self) -> bool:
        return len(self._refused) > 0

    def take_early(self) -> QueuedPod | None:
        """Removes the refused pod whose back-off ends first."""
        return self._refused.pop()

    def take_finished(self, now: float) -> list[QueuedPod]:
        """Removes all pods whose back-off is over, refused pods first."""
        return [*self._finished(self._refused, now), *self._finished(self._failed, now)]

    def _finished(self, room: KeyedHeap[QueuedPod], now: float) -> list[QueuedPod]:
        finished: list[QueuedPod] = []
        while (first := room.peek()) is not None and not self.policy.is_waiting(first, now):
            room.pop()
            finished.append(first)
        return finished

    def _ends_first(self, one: QueuedPod, other: QueuedPod) -> bool:
        return self._end(one) < self._end(other)

    def _ends_first_then_queue_order(self, one: QueuedPod, other: QueuedPod) -> bool:
        ends = self._end(one), self._end(other)
        return ends[0] < ends[1] if ends[0] != ends[1] else self._goes_before(one, other)

    def _end(self, queued: QueuedPod) -> float:
        end = self.policy.ends_at(queued)
        return -math.inf if end is None else end


def _key(queued: QueuedPod) -> str:
    return queued.key
