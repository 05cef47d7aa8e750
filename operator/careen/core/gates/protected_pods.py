"""Refuses while a pod runs on the node that asks autoscalers not to disturb it (--protected-pods).

The pods count that a drain would disturb, and those that --drain-pod-selector leaves to the reboot. Pods that every
node has, of DaemonSets and static ones, do not: their node could never reboot.
"""

from __future__ import annotations

from careen.core.drain.drain_plan import to_evict
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate, pods_here
from careen.core.situation import Situation
from scheduler_core.model.pod import wants_rest
from scheduler_core.sentences import first_few

_LONGEST_SECONDS = 86400.0  # then an alert fires; a person decides
_EVERY_POD = DrainPolicy()


@gate(
    "protected-pods",
    when=BEFORE_THE_CORDON,
    cost=Cost.COSTLY,
    needs=lambda policy: {Evidence.PODS} if policy.protects_pods else set(),
)
def protected_pods(situation: Situation) -> No | None:
    pods = pods_here(situation)
    if isinstance(pods, No):
        return pods
    protected = sorted(
        f"{pod.title} ({mark})" for pod in to_evict(pods, _EVERY_POD) if (mark := wants_rest(pod.annotations))
    )
    if not protected:
        return None
    return No(
        Code.PROTECTED_POD,
        f"these pods ask not to be disturbed: {first_few(protected)}",
        longest_seconds=_LONGEST_SECONDS,
    )
