"""The pods that wait for an event, and the events that may help them.

Source: unschedulable_pods.go and isPodWorthRequeuing in pkg/scheduler/backend/queue (v1.36).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import field

from scheduler_core.model.pod import Pod
from scheduler_core.queue.events import ClusterEvent, EventHint
from scheduler_core.queue.queued_pod import QueuedPod, identity
from scheduler_core.values import Value

UNSCHEDULABLE_PATIENCE_SECONDS = 5 * 60
"""After this time a waiting pod is tried again without an event, because some hint may be wrong."""


class Requeue(Enum):
    """The effect of an event on a waiting pod."""

    STAY = "the pod keeps waiting"
    AFTER_BACKOFF = "the pod becomes active after its back-off"
    AT_ONCE = "the pod becomes active at once"


class RegisteredHints(Value, kw_only=True):
    """The events that each plugin of one profile registered, with their hints."""

    by_plugin: Mapping[str, tuple[EventHint, ...]] = field(default_factory=dict)

    def interests(self, event: ClusterEvent) -> bool:
        return any(hint.event.matches(event) for hints in self.by_plugin.values() for hint in hints)

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        return tuple(hint.event for hint in self.by_plugin.get(plugin, ()))

    def judge(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Requeue:
        """The event's effect, by the hints of the plugins that refused the pod."""
        if not queued.rejectors:
            return Requeue.AFTER_BACKOFF
        if event.is_wildcard:
            is_for_another = new is not None and not (isinstance(new, Pod) and identity(new) == identity(queued.pod))
            return Requeue.STAY if is_for_another else Requeue.AFTER_BACKOFF
        if any(self._helps(plugin, queued, event, old, new) for plugin in queued.pending_plugins):
            return Requeue.AT_ONCE
        if any(self._helps(plugin, queued, event, old, new) for plugin in queued.unschedulable_plugins):
            return Requeue.AFTER_BACKOFF
        return Requeue.STAY

    def _helps(self, plugin: str, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> bool:
        return any(
            hint.event.matches(event) and _asked(hint, queued, old, new) for hint in self.by_plugin.get(plugin, ())
        )


def _asked(hint: EventHint, queued: QueuedPod, old: Any, new: Any) -> bool:
    try:
        return hint.helps(queued.pod, old, new)
    except Exception:  # a hint that raises must not block its pod: a needless attempt only costs time
        return True


class WaitingRoom:
    """Refused pods that wait for an event, and gated pods, in the order of their arrival."""

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def pods(self) -> tuple[QueuedPod, ...]:
        return tuple(self._pods.values())

    def get(self, key: str) -> QueuedPod | None:
        return self._pods.get(key)

    def put(self, queued: QueuedPod) -> None:
        self._pods[queued.key] = queued

    def remove(self, key: str) -> QueuedPod | None:
        return self._pods.pop(key, None)

    def out_of_patience(self, now: float) -> tuple[QueuedPod, ...]:
        return tuple(
            queued for queued in self._pods.values() if now - queued.timestamp > UNSCHEDULABLE_PATIENCE_SECONDS
        )
