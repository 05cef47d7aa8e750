"""Orders the queue: higher priority first, then the pod that was queued earlier. Refuses nothing."""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.framework.extension_points import QueuedPodInfo
from scheduler_core.values import Value


class PrioritySort(Value):
    """plugins/queuesort/priority_sort.go, v1.36."""

    name: ClassVar[str] = "PrioritySort"

    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        if one.pod.priority != other.pod.priority:
            return one.pod.priority > other.pod.priority
        return one.timestamp < other.timestamp
