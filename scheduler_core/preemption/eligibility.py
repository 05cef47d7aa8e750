"""Whether a pod may preempt others. Source: PodEligibleToPreemptOthers in
plugins/defaultpreemption/default_preemption.go, v1.36."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.model.pod import Pod


def is_preemptible_by(victim: Pod, pod: Pod) -> bool:
    """By priority alone: disruption budgets never forbid a preemption."""
    return victim.priority < pod.priority


def why_ineligible(pod: Pod, nominated_verdict: Verdict | None, pods_on_nominated_node: Iterable[Pod]) -> str:
    """Why the pod must not preempt now; "" if it may.

    A pod that has already preempted others waits until they are gone, unless its nominated node has become
    unresolvable: no preemption can make it fit there.
    """
    if pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    if not pod.nominated_node_name:
        return ""
    if nominated_verdict is not None and nominated_verdict.code is VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    if any(
        is_preemptible_by(other, pod) and other.terminating and other.preempted_by_scheduler
        for other in pods_on_nominated_node
    ):
        return "not eligible due to a terminating pod on the nominated node."
    return ""
