"""Refuses while a pod runs on the node that asks autoscalers not to disturb it (--protected-pods).

The pods count that a drain would disturb, and those that --drain-pod-selector leaves to the reboot. Pods that every
node has, of DaemonSets and static ones, do not: their node could never reboot.
"""

from __future__ import annotations

from careen.core.drain.protection import LONGEST_SECONDS, disturbed
from careen.core.facts.phases import Evidence
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


@gate(
    "protected-pods",
    when=BEFORE_THE_CORDON,
    cost=Cost.COSTLY,
    needs=lambda policy: {Evidence.PODS} if policy.protects_pods else set(),
)
def protected_pods(situation: Situation) -> No | None:
    pods = situation.seen.pods
    if not isinstance(pods, tuple):
        return No(Code.PODS_UNKNOWN, f"the pods of this node cannot be listed: {pods.why}")
    protected = sorted(f"{pod.title} ({annotation})" for pod, annotation in disturbed(pods))
    if not protected:
        return None
    return No(
        Code.PROTECTED_POD,
        f"these pods ask not to be disturbed: {first_few(protected)}",
        longest_seconds=LONGEST_SECONDS,
    )
