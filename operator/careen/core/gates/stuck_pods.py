"""Refuses while a pod on this node has been terminating for longer than its grace period: the drain would wait for it,
perhaps for ever, with the node cordoned. With --skip-wait-for-delete-timeout the drain does not wait, and the gate is
off."""

from __future__ import annotations

from careen.core.drain import drain_plan
from careen.core.facts.phases import Evidence
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate, pods_here
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


@gate(
    "stuck-pods",
    when=BEFORE_THE_CORDON,
    cost=Cost.COSTLY,
    needs=lambda policy: set() if policy.drain.skip_wait_for_delete_seconds > 0 else {Evidence.PODS},
)
def stuck_pods(situation: Situation) -> No | None:
    pods = pods_here(situation)
    if isinstance(pods, No):
        return pods
    stuck = drain_plan.stuck(pods, situation.policy.drain, now=situation.server_now)
    if not stuck:
        return None
    described = first_few(sorted(f"{pod.title} ({drain_plan.terminating(pod)})" for pod in stuck))
    return No(Code.STUCK_POD, f"these pods have not ended within their grace period: {described}")
