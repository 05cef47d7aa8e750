"""A pod in the queue, with the results of its earlier scheduling attempts."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler_core.model.pod import Pod
from scheduler_core.queue.events import ClusterEvent


def identity(pod: Pod) -> str:
    """Tells this pod from a later one of the same name: its uid, or its name if it has no uid."""
    return pod.uid or pod.key


@dataclass(slots=True, kw_only=True, eq=False)
class QueuedPod:
    """Times are seconds of the clock that the queue is called with.

    `timestamp`: when the pod last entered the queue, also after a refusal; it orders pods of equal priority.
    `unschedulable_count`: attempts in which plugins refused the pod. `consecutive_errors`: errors since the last
    attempt without one. The back-off grows with `consecutive_errors` or, if that is 0, with `unschedulable_count`.
    `flushed_at`: since 1.37, when the pod was last retried because no event came.
    """

    pod: Pod
    timestamp: float
    first_attempt_at: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    backoff_until: float | None = None
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    gating_reason: str = ""
    gating_events: tuple[ClusterEvent, ...] = ()
    was_flushed: bool = False
    flushed_at: float | None = None

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def is_gated(self) -> bool:
        """Whether a PreEnqueue plugin keeps the pod out of the active and back-off queues."""
        return bool(self.gating_plugin)

    @property
    def rejectors(self) -> set[str]:
        """The plugins that refused the pod or made it wait. Empty after an error."""
        return self.unschedulable_plugins | self.pending_plugins
