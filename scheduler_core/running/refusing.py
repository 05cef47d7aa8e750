"""Puts a pod back into the queue and writes why, at most once and only if the status says something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from scheduler_core.model.pod import Pod
from scheduler_core.queue.failed_cycle import FailedCycle
from scheduler_core.running.commands import Count, Note, PostPodEvent, WriteStatus
from scheduler_core.running.parts import Parts, StatusSaid
from scheduler_core.sentences import none_available

LEFT_PENDING = "scheduler_core"
"""The name under which pods are refused that this scheduler cannot place yet."""


def why_left_pending(pod: Pod) -> str:
    """Why this scheduler cannot place the pod correctly; "" if it can."""
    if pod.spec.is_of_group:
        return "spec.schedulingGroup: this scheduler does not place the pods of a group together yet"
    if pod.spec.resource_claims:
        return "spec.resourceClaims: this scheduler does not allocate devices yet"
    return ""


def one_node_refused(reasons: Iterable[str]) -> str:
    """The sentence of kube-scheduler when Reserve or Permit refuses the pod on the node that was found for it."""
    return none_available(1, Counter(reasons))


def refuse(parts: Parts, pod: Pod, failed: FailedCycle) -> None:
    """`failed`: the pod is in the queue again."""
    is_error = failed.reason == "SchedulerError"
    parts.out.append(Count(metric="schedule_attempts_total", label="error" if is_error else "unschedulable"))
    text = "Error scheduling pod; retrying" if is_error else "Unable to schedule pod; no fit; waiting"
    parts.out.append(Note(verbosity=0 if is_error else 2, text=text, pod=pod.key, why=failed.message))
    is_news = write_refusal(parts, pod, failed)
    if is_news:
        parts.out.append(
            PostPodEvent(
                pod=pod.key,
                uid=pod.uid,
                profile=pod.spec.scheduler_name,
                is_warning=True,
                reason="FailedScheduling",
                action="Scheduling",
                note=failed.event,
            )
        )
    for displaced in failed.displaced:
        nominate(parts, displaced, "")


def write_refusal(parts: Parts, pod: Pod, failed: FailedCycle) -> bool:
    """Whether the status says something else now."""
    before = _said_before(parts, pod)
    node = before.nominated_node if failed.nominated_node is None else failed.nominated_node
    if (before.reason, before.message, before.nominated_node) == (failed.reason, failed.message, node):
        return False
    is_same_node = node == before.nominated_node and not parts.writes.has(WriteStatus, pod.uid)
    parts.said[pod.uid] = replace(before, reason=failed.reason, message=failed.message, nominated_node=node)
    parts.writes.ask(
        WriteStatus(
            number=parts.number(),
            pod=pod.key,
            uid=pod.uid,
            reason=failed.reason,
            message=failed.message,
            nominated_node=None if is_same_node else node,
            changes_condition=not before.is_false,
        )
    )
    return True


def nominate(parts: Parts, pod: Pod, node: str) -> None:
    """Writes the nomination alone, or without `node` removes it. A refusal that waits to be written stays in the
    write."""
    before = _said_before(parts, pod)
    if before.nominated_node == node:
        return
    parts.said[pod.uid] = replace(before, nominated_node=node)
    has_status = parts.writes.has(WriteStatus, pod.uid)
    parts.writes.ask(
        WriteStatus(
            number=parts.number(),
            pod=pod.key,
            uid=pod.uid,
            reason=before.reason if has_status else "",
            message=before.message if has_status else "",
            nominated_node=node,
            changes_condition=has_status and not before.is_false,
        )
    )


def _said_before(parts: Parts, pod: Pod) -> StatusSaid:
    """What was written last; without that, what the pod's status says."""
    refusal = pod.refusal
    return parts.said.get(pod.uid) or StatusSaid(
        refusal.reason if refusal is not None else "",
        refusal.message if refusal is not None else "",
        pod.nominated_node_name,
        refusal is not None,
    )
