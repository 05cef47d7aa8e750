"""Puts a pod back into the queue after its cycle failed, and keeps, sets or clears its nomination.

Only this module clears a nomination. Until 1.33 kube-scheduler also did so inside preemption's search for candidates,
where a concurrent update could be lost (kubernetes/kubernetes#131239). Source: handleSchedulingFailure and
schedulingAlgorithm in pkg/scheduler/schedule_one.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection

from scheduler_core.arguments import checked
from scheduler_core.cycle_result import CycleResult
from scheduler_core.model.pod import Pod
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.queue.scheduling_queue import Room, SchedulingQueue
from scheduler_core.values import Value

_TRUNCATED = " ..."
_EVENT_LIMIT = 1024


class FailedCycle(Value, kw_only=True):
    """Where the pod is in the queue now, and what the caller must write to it.

    `nominated_node`: None leaves the status as it is, empty clears the nominated node. `reason` and `message` belong to
    the condition PodScheduled=False; `event` is the message, shortened to the limit of an Event. `displaced` are pods
    of lower priority that lose their nomination to this pod's.
    """

    room: Room
    reason: str
    message: str
    nominated_node: str | None = None
    displaced: tuple[Pod, ...] = ()

    @property
    def event(self) -> str:
        return event_note(self.message)


def event_note(message: str) -> str:
    """The message, shortened to the characters that an Event's note may have."""
    if len(message) <= _EVENT_LIMIT:
        return message
    return message[: _EVENT_LIMIT - len(_TRUNCATED)] + _TRUNCATED


@checked
def handle_failed_cycle(queue: SchedulingQueue, queued: QueuedPod, result: CycleResult, now: float) -> FailedCycle:
    """Puts the pod back and updates its nomination. `result`: of a cycle that found no node for the pod."""
    is_answer = not result.error and len(result.diagnosis.nodes) > 0
    return handle_failed_attempt(
        queue,
        queued,
        now,
        refused_by=result.diagnosis.refusing_plugins() if is_answer else (),
        pending_for=result.diagnosis.pending_plugins() if is_answer else (),
        message=result.error or result.sentence,
        is_error=bool(result.error),
        nominated_node=nominated_by(result),
    )


def handle_failed_attempt(
    queue: SchedulingQueue,
    queued: QueuedPod,
    now: float,
    *,
    message: str,
    refused_by: Collection[str] = (),
    pending_for: Collection[str] = (),
    is_error: bool = False,
    nominated_node: str | None = "",
) -> FailedCycle:
    """As `handle_failed_cycle`, also for a pod that had a node and could not be bound."""
    room = queue.add_unschedulable(queued, now, refused_by=refused_by, pending_for=pending_for)
    queue.nominations.add(queued.pod, nominated_node)
    return FailedCycle(
        room=room,
        reason="SchedulerError" if is_error else "Unschedulable",
        message=message,
        nominated_node=nominated_node,
        displaced=_displace(queue, queued.pod, nominated_node) if nominated_node else (),
    )


def nominated_by(result: CycleResult) -> str | None:
    """The node that the result nominates for the pod; empty to clear the nomination, None to keep it.

    It is cleared after an error, in a cluster without nodes, and, since 1.35, in a profile without PostFilter.
    Preemption clears it if it can make room on no node, and keeps it while the evicted pods terminate.
    """
    if result.error or not len(result.diagnosis.nodes):
        return ""
    if result.nomination is None:
        return None
    return "" if result.nomination.clears else result.nomination.node


def _displace(queue: SchedulingQueue, pod: Pod, node: str) -> tuple[Pod, ...]:
    """Removes the nominations to this node of pods with a lower priority. The scheduler must try to place them
    again."""
    losers = tuple(other for other in queue.nominations.on(node) if other.priority < pod.priority)
    for loser in losers:
        queue.nominations.add(loser, "")
    return losers
