"""The pods that wait for an event, and the events that may help them.

Source: unschedulable_pods.go and isPodWorthRequeuing in pkg/scheduler/backend/queue (v1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cached_property
from typing import Any

from msgspec import field

from scheduler_core.model.pod import Pod
from scheduler_core.queue.events import ClusterEvent, EventHint, Hint
from scheduler_core.queue.queued_pod import QueuedPod, identity
from scheduler_core.values import Value

UNSCHEDULABLE_PATIENCE_SECONDS = 5 * 60
"""After this time a waiting pod is tried again without an event, because some hint may be wrong."""


class Requeue(Enum):
    """The effect of an event on a waiting pod."""

    STAY = "the pod keeps waiting"
    AFTER_BACKOFF = "the pod becomes active after its back-off"
    AT_ONCE = "the pod becomes active at once"


class RegisteredHints(Value, kw_only=True, dict=True):
    """The events that each plugin of one profile registered, with their hints."""

    by_plugin: Mapping[str, tuple[EventHint, ...]] = field(default_factory=dict)

    def asked_about(self, event: ClusterEvent) -> Mapping[str, tuple[Hint, ...]]:
        """The hints of each plugin that registered this event. Without the other plugins."""
        known = self._asked_about.get(event)
        if known is None:
            matching = {
                plugin: tuple(hint.helps for hint in hints if hint.event.matches(event))
                for plugin, hints in self.by_plugin.items()
            }
            known = self._asked_about[event] = {plugin: hints for plugin, hints in matching.items() if hints}
        return known

    @cached_property
    def _asked_about(self) -> dict[ClusterEvent, Mapping[str, tuple[Hint, ...]]]:
        return {}

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        return tuple(hint.event for hint in self.by_plugin.get(plugin, ()))

    def judge(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Requeue:
        """The event's effect, by the hints of the plugins that refused the pod."""
        if not (queued.unschedulable_plugins or queued.pending_plugins):
            return Requeue.AFTER_BACKOFF
        if event.is_wildcard:
            is_for_another = new is not None and not (isinstance(new, Pod) and identity(new) == identity(queued.pod))
            return Requeue.STAY if is_for_another else Requeue.AFTER_BACKOFF
        hints = self.asked_about(event)
        if _helps(hints, queued.pending_plugins, queued.pod, old, new):
            return Requeue.AT_ONCE
        helps = _helps(hints, queued.unschedulable_plugins, queued.pod, old, new)
        return Requeue.AFTER_BACKOFF if helps else Requeue.STAY


def _helps(hints: Mapping[str, tuple[Hint, ...]], plugins: Iterable[str], pod: Pod, old: Any, new: Any) -> bool:
    for plugin in plugins:
        for hint in hints.get(plugin, ()):
            if _answer(hint, pod, old, new):
                return True
    return False


def _answer(hint: Hint, pod: Pod, old: Any, new: Any) -> bool:
    try:
        return hint(pod, old, new)
    except Exception:  # a hint that raises must not block its pod: a needless attempt only costs time
        return True


class WaitingRoom:
    """Refused pods that wait for an event, and gated pods, in the order of their arrival.

    Indexed by the plugins that refused them, so that an event costs nothing for the pods that it cannot help.
    """

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self._refused_by: dict[str, dict[str, int]] = {}  # plugin → keys of pods, with the number of their arrival
        self._indexed: dict[str, tuple[int, frozenset[str]]] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def pods(self) -> tuple[QueuedPod, ...]:
        return tuple(self._pods.values())

    def get(self, key: str) -> QueuedPod | None:
        return self._pods.get(key)

    def refused_by(self, plugins: Iterable[str]) -> list[QueuedPod]:
        """The pods that at least one of these plugins refused."""
        found: dict[str, int] = {}
        for plugin in plugins:
            found.update(self._refused_by.get(plugin, {}))
        return [self._pods[key] for key in sorted(found, key=found.__getitem__)]

    def put(self, queued: QueuedPod) -> None:
        key, plugins = queued.key, queued.rejectors
        number, before = self._indexed.get(key, (self._arrivals, frozenset[str]()))
        self._arrivals += key not in self._pods
        self._pods[key] = queued
        if plugins != before or key not in self._indexed:
            self._leave_index(key, before - plugins)
            for plugin in plugins - before:
                self._refused_by.setdefault(plugin, {})[key] = number
            self._indexed[key] = (number, frozenset(plugins))

    def remove(self, key: str) -> QueuedPod | None:
        queued = self._pods.pop(key, None)
        if queued is not None:
            self._leave_index(key, self._indexed.pop(key)[1])
        return queued

    def _leave_index(self, key: str, plugins: Iterable[str]) -> None:
        for plugin in plugins:
            keys = self._refused_by[plugin]
            del keys[key]
            if not keys:
                del self._refused_by[plugin]

    def out_of_patience(self, now: float) -> tuple[QueuedPod, ...]:
        return tuple(
            queued
            for queued in self._pods.values()
            if now - max(queued.timestamp, queued.flushed_at or queued.timestamp) > UNSCHEDULABLE_PATIENCE_SECONDS
        )
